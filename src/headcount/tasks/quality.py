"""The quality of a model at a task, with the statistics of each example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan

import numpy as np

from headcount.errors import UsageError
from headcount.metrics import ACCURACY, FEW, Metric
from headcount.record import Signature
from headcount.statistics import Comparison, Interval, bootstrap_interval, counted, share_interval

_RESAMPLES = 1000  # of a comparison


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

    def against(self, reference: Quality) -> Comparison:
        """This quality less that of a reference on the same examples, paired.

        Raises UsageError if the metric, the number of examples or the data is another one.
        """
        self._check_comparable(reference)
        (comparison,) = self.metric.compare(reference.statistics, self.statistics[None], resamples=_RESAMPLES)
        return comparison

    def _check_comparable(self, reference: Quality) -> None:
        hashes = self.signature.data, reference.signature.data  # "" if unknown
        shapes = self.statistics.shape, reference.statistics.shape
        if self.name != reference.name:
            what = f"this one is {self.name}, the reference {reference.name}"
        elif shapes[0][0] != shapes[1][0]:
            what = f"this one is of {shapes[0][0]} examples, the reference of {shapes[1][0]}"
        elif shapes[0] != shapes[1]:
            what = f"this one has {shapes[0][1]} statistics of each example, the reference {shapes[1][1]}"
        elif all(hashes) and hashes[0] != hashes[1]:
            what = f"this one is of the data {hashes[0][:8]}, the reference of {hashes[1][:8]} (signature.data)"
        else:
            return
        raise UsageError(f"Qualities are compared example by example, but {what}. Measure both with the same task.")

    def interval(self) -> Interval:
        """The value with its 95% interval over examples, within what the metric can be; that of accuracy is exact.

        Resamples of few mistakes vary too little. With at most three, or where all resamples are alike, the interval
        has what so many examples may miss: answers of another kind, as many as the exact upper end of their share.
        """
        table = counted(self.statistics)
        if self.metric is ACCURACY:
            return share_interval(int(table[:, 0].sum()), len(table))
        interval = bootstrap_interval(table, self.metric.of_sums, biased=self.metric.biased)
        if self.metric.reach is not None:
            _, low, high = self.metric.reach(table.sum(0))
            interval = Interval(interval.value, min(interval.low, low), max(interval.high, high))
        mistakes = 0 if interval.low == interval.high else self.metric.mistakes(table)
        if mistakes is not None and mistakes <= FEW and not isnan(interval.low):
            right = 1 - mistakes / len(table)
            further = share_interval(mistakes, len(table)).high - 1 + right
            ends = self.metric.unseen(table.sum(0), further / right).ravel()
            interval = Interval(interval.value, min([interval.low, *ends]), max([interval.high, *ends]))
        return self.metric.possible(interval)


@dataclass(frozen=True)
class Evaluation:
    """Quality of a model and further measures."""

    quality: Quality
    measures: Mapping[str, float]  # by name, the quality first
    columns: tuple[str, ...] = ()  # names of the statistics' columns, if they have any
    settings: Mapping[str, str] = field(default_factory=dict)  # of the metrics, as other tools write them
    translations: tuple[str, ...] | None = None  # one per example
