"""The result of `headcount evaluate`: how good a model is at its task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import MeasuredOn, Quality, Result


@dataclass(frozen=True)
class Evaluation(Result):
    """Quality with its interval, what else the task measures, and the numbers of every example."""

    task: str
    quality: Quality
    measures: Mapping[str, float]  # everything that was measured, the quality first
    examples: int  # without those that say nothing, such as texts without a prediction
    columns: tuple[str, ...]  # of the statistics; empty if they have no names
    statistics: tuple[tuple[float, ...], ...]  # one row per example, from which the quality follows
    settings: Mapping[str, str]  # of the metrics, as other tools write them
    translations: tuple[str, ...] | None = None  # one per example
    measured_on: MeasuredOn | None = None  # of a pruned model: whether its heads were chosen on other texts


RESULT = Evaluation
