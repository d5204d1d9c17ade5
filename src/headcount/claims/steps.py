"""Steps of pruning curves, read as intervals: the score left as heads go."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.record.result import Step
from headcount.record.results.curves import Curve, Curves
from headcount.record.results.dynamics import EpochStep
from headcount.statistics import Interval

_CLOSE = 0.05  # largest distance of a step from the requested share


def at(points: Sequence[Step], share: float) -> Step | None:
    """The step with about this share of heads gone; None if no step is near."""
    nearest = min(points, key=lambda point: abs(point.share - share))
    return nearest if abs(nearest.share - share) <= _CLOSE + 1e-9 else None


def kept(point: Step | EpochStep, base: float, *, higher_is_better: bool) -> Interval:
    """Share of the unpruned score that remains; for a loss or perplexity, unpruned / pruned."""
    if higher_is_better:
        return Interval(point.value / base, point.low / base, point.high / base)
    return Interval(base / point.value, base / point.high, base / point.low)


def ordered_by(curves: Curves, order: str) -> Curve | None:
    """The curve of all kinds in this order; None if there is none."""
    return next((curve for curve in curves.curves if curve.order == order), None)
