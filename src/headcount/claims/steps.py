"""Steps of pruning curves, read as intervals: the score left as heads go."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from typing import TypeVar

from headcount.claims.studied import StudiedModel
from headcount.record.result import PruningStep, Step
from headcount.record.results.curves import Curve, Curves
from headcount.record.results.dynamics import Dynamics, EpochStep
from headcount.statistics import Interval

AnyStep = TypeVar("AnyStep", bound=PruningStep)
Pruned = TypeVar("Pruned", Curves, Dynamics)
NO_DYNAMICS = "no record of dynamics, which needs a model folder with checkpoints of its epochs"
SEEN = "heads were ranked on the very examples that they are measured on, or on more than a tenth of them"

CLOSE = 0.05  # largest distance of a step from the requested share


def studied(models: Sequence[StudiedModel], kind: type[Pruned]) -> tuple[list[Pruned], bool]:
    """The results of this kind on examples that heads were hardly ranked on, and whether others were left out."""
    results = [parts for model in models if (parts := model.first(kind))]
    held_out = [parts for parts in results if not parts.measured_on.much_seen]
    return held_out, len(held_out) < len(results)


def at(points: Sequence[AnyStep], share: float) -> AnyStep | None:
    """The step with about this share of heads gone; None if no step is near."""
    nearest = min(points, key=lambda point: abs(point.share - share))
    return nearest if abs(nearest.share - share) <= CLOSE + 1e-9 else None


def kept(point: Step | EpochStep, unpruned: PruningStep, *, higher_is_better: bool) -> Interval:
    """Share of the unpruned score that remains; for a loss or perplexity, unpruned / pruned.

    Paired by example if the record has it, else as of independent ones.
    """
    if point.kept is not None:
        return Interval(*point.kept)
    over, under = (point, unpruned) if higher_is_better else (unpruned, point)
    share = over.value / under.value
    low = share - hypot(over.value - over.low, share * (under.high - under.value)) / under.value
    high = share + hypot(over.high - over.value, share * (under.value - under.low)) / under.value
    return Interval(share, low, high)


def ordered_by(curves: Curves, order: str) -> Curve | None:
    """The curve of all kinds in this order; None if there is none."""
    return next((curve for curve in curves.curves if curve.order == order), None)
