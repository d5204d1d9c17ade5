"""Leads: how much better one pruning curve is than another, and the claims that such a lead decides."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from headcount.claims.claim import NORMAL, Measurement, above, least, missing
from headcount.claims.steps import SEEN, studied
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves, Lead
from headcount.statistics import Interval, half_width

_RANGES = {"BLEU": 100.0, "accuracy": 1.0, "token accuracy": 1.0, "F1": 1.0, "Matthews": 2.0}  # highest less lowest


def lead_of(curves: Curves, name: str, baseline: str) -> Lead | None:
    """The lead of one order, or kind pruned alone, over another on the same examples; None if it is not recorded."""
    return next((lead for lead in curves.leads if (lead.first, lead.second) == (name, baseline)), None)


def decided_by_leads(models: Sequence[StudiedModel], pairs: Sequence[tuple[str, str]], reason: str) -> Measurement:
    """A claim that holds if all these leads, pooled over models, are above 0; decided by the smallest.

    Models without all of the leads are left out. reason: why no model has them. Examples are shared by all models.
    """
    curves_of_models, seen = studied(models, Curves)
    leads = [(curves, [lead for pair in pairs if (lead := lead_of(curves, *pair))]) for curves in curves_of_models]
    rows = [(curves, row) for curves, row in leads if row and len(row) == len(pairs)]
    if not rows:
        return missing(SEEN if seen else reason)
    parts = [[_interval(row[number], several=len(rows) > 1) for _, row in rows] for number in range(len(pairs))]
    metric = rows[0][0].metric
    interval = _within(least(parts, shared=True), metric)
    return Measurement(interval, above(interval, 0.0), len(rows), 1, metric)


def leading(models: Sequence[StudiedModel], pair: tuple[str, str]) -> list[tuple[Curves, Lead]]:
    """The models that have this lead on examples that heads were hardly ranked on."""
    return [(curves, lead) for curves in studied(models, Curves)[0] if (lead := lead_of(curves, *pair))]


def random_orders(curves: Curves) -> int:
    return sum(curve.order == "random" for curve in curves.curves)


def beyond_chance(curves: Curves, lead: Lead, examples: float, of_order: float) -> Interval:
    """The lead of one model, with an interval that a lead by chance is in.

    A score gives a single order, which differs from others that are as good by chance. Several models have several
    such orders: their leads vary between models.
    examples, of_order: variance over examples, and by chance, which the random orders of the model show.
    """
    half = float(half_width((of_order + examples) ** 0.5, random_orders(curves)))
    interval = Interval(lead.value, min(lead.low, lead.value - half), max(lead.high, lead.value + half))
    return _within(interval, curves.metric)


def variance_of_order(curves: Curves, order: str) -> float | None:
    """The variance of a lead between random orders; None with fewer than two of them."""
    lead, orders = lead_of(curves, order, "random"), random_orders(curves)
    if lead is None or orders < 2:
        return None
    return orders * (lead.variance or {}).get("seeds", 0.0)  # the mean of all has this divided by their number


def _within(interval: Interval, metric: str) -> Interval:
    """An interval of differences without those that the metric cannot have."""
    largest = _RANGES.get(metric, inf)
    return interval._replace(low=max(interval.low, -largest), high=min(interval.high, largest))


def _interval(lead: Lead, *, several: bool) -> Interval:
    """Over examples. Random orders differ between models: with several, their variance is that between models."""
    if several and lead.variance:
        half = NORMAL * lead.variance["examples"] ** 0.5
        return Interval(lead.value, lead.value - half, lead.value + half)
    return Interval(lead.value, lead.low, lead.high)
