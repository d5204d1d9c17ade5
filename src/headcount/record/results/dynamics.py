"""The result of `headcount study dynamics`: when in training heads become dispensable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import ClassVar

from headcount.record.result import MeasuredOn, PruningStep, Result
from headcount.statistics import Interval


@dataclass(frozen=True)
class EpochStep(PruningStep):
    """The model of one epoch with some of its heads masked."""

    kept_by_kind: Mapping[str, int]  # kind -> number of remaining heads
    kept_share: float  # of the epoch's own score with all heads; of a loss, that with all heads / this one
    kept: Interval | None = None  # the same with its 95% interval, paired by example


@dataclass(frozen=True)
class Epoch:
    """The pruning curve of one epoch."""

    epoch: float  # 0.25: after a quarter of the first one
    value: float  # of the metric with all heads
    points: tuple[EpochStep, ...]

    def share_left(self, step: EpochStep) -> float:
        """The share of the own score that a step keeps; nan if that score is 0 or less, also in older records."""
        return step.kept_share if self.value > 0 else nan

    def multiple(self, step: EpochStep) -> float:
        """The value of a metric of which lower is better with heads masked, over that with all heads; nan as above."""
        return step.value / self.value if self.value > 0 else nan

    def nearest(self, share: float) -> EpochStep:
        """The measured step whose share of removed heads is nearest to this one."""
        return min(self.points, key=lambda point: abs(point.share - share))


@dataclass(frozen=True)
class Dynamics(Result):
    """Every epoch's model pruned by its own scores."""

    VERSION: ClassVar[int] = 2

    metric: str
    higher_is_better: bool
    order: str
    measured_on: MeasuredOn
    by_epoch: tuple[Epoch, ...]


RESULT = Dynamics
