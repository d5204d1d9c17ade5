"""The quality of a model at a task, with the statistics of each example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from headcount.metrics import Metric
from headcount.record import Signature
from headcount.statistics import Interval, bootstrap_interval, counted


@dataclass(frozen=True)
class Quality:
    """Quality of a model at a task: the value of a metric, and the statistics of each example behind it.

    Attributes:
        name: Name of the metric.
        value: Value of the metric over all examples.
        statistics: Array [examples, columns] with what each example contributes. Paired tests compare these.
        signature: Data and arguments that the value was measured with.
        metric: Function from summed statistics to the value; also applied to resampled examples.
    """

    name: str
    value: float
    statistics: np.ndarray
    signature: Signature
    metric: Metric

    @classmethod
    def of(cls, metric: Metric, statistics: np.ndarray, signature: Signature | None = None) -> Quality:
        """The quality that follows from the statistics of all examples."""
        return cls(metric.name, metric.of(statistics), statistics, signature or Signature(), metric)

    def interval(self) -> Interval:
        """The value with its 95% interval over examples.

        Where all resamples are alike, as with right answers alone, the interval has what so many examples may miss: an
        answer of another kind that up to 1 - .025^(1/N) of all have (exact for accuracy).
        """
        interval = bootstrap_interval(self.statistics, self.metric.of_sums, skewed=self.metric.skewed)
        if interval.low != interval.high:
            return interval
        table = counted(self.statistics)
        ends = self.metric.unseen(table.sum(0), 1 - 0.025 ** (1 / len(table))).ravel()
        return Interval(interval.value, min(interval.low, *ends), max(interval.high, *ends)) if len(ends) else interval


@dataclass(frozen=True)
class Evaluation:
    """Quality of a model and further measures."""

    quality: Quality
    measures: Mapping[str, float]  # by name, the quality first
    columns: tuple[str, ...] = ()  # names of the statistics' columns, if they have any
    settings: Mapping[str, str] = field(default_factory=dict)  # of the metrics, as other tools write them
    translations: tuple[str, ...] | None = None  # one per example
