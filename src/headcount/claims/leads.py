"""Leads: how much better one pruning curve is than another, and the claims that such a lead decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headcount.claims.claim import Measurement, above, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves
from headcount.statistics import Interval


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
