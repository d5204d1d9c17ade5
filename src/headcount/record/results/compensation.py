"""The result of `headcount study compensation`: pruning without training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import MeasuredOn, PruningStep, Quality, Result
from headcount.statistics import Interval


@dataclass(frozen=True)
class ExcessPoint(PruningStep):
    """Negative log-likelihood of an example above the whole model's, with some heads removed."""

    seconds: float  # to prune the model, without measuring
    removed_heads: tuple[str, ...]


@dataclass(frozen=True)
class Whole:
    """The model with all heads."""

    loss: float  # mean negative log-likelihood of an example
    quality: Quality


@dataclass(frozen=True)
class CoursePoint:
    """Quality without compensation at one number of heads."""

    removed: int
    quality: Quality


@dataclass(frozen=True)
class Reached:
    """All ways at the first number of heads at which no compensation loses the stated points."""

    removed: int
    quality: Mapping[str, Quality]  # way -> quality
    ratios: Mapping[str, Interval]  # way/other -> excess loss over that of the other


@dataclass(frozen=True)
class CompensationCurves(Result):
    """Every compensation under the same masks, and greedy search under its own."""

    metric: str
    num_heads: int
    order: str
    measured_on: MeasuredOn
    full: Whole
    compensations: Mapping[str, tuple[ExcessPoint, ...]]  # way -> points, most heads first
    course: tuple[CoursePoint, ...]  # without compensation, until the stated points are lost
    at: Reached | None  # None if they are never lost


RESULT = CompensationCurves
