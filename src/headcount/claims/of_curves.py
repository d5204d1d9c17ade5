"""Pruning curves: the score left as heads go, the lead of one curve over another, and claims that a lead decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headcount.claims.claim import Measurement, above, missing, pooled
from headcount.claims.studied import StudiedModel
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


def lead_of(curves: Curves, first: str, second: str) -> Interval | None:
    """The lead of one order, or kind pruned alone, over another on the same examples; None if it is not recorded."""
    row = next((lead for lead in curves.leads if (lead.first, lead.second) == (first, second)), None)
    return None if row is None else Interval(row.value, row.low, row.high)


def decided_by_lead(
    models: Sequence[StudiedModel], lead: Callable[[Curves], Interval | None], reason: str
) -> Measurement:
    """A claim that holds if the lead, pooled over models, is above 0. reason: why no model has a lead."""
    leads = [(curves, row) for model in models if (curves := model.first(Curves)) and (row := lead(curves))]
    if not leads:
        return missing(reason)
    interval = pooled([row for _, row in leads])
    return Measurement(interval, above(interval, 0.0), len(leads), 1, leads[0][0].metric)
