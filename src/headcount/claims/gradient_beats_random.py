"""M5: the gradient order loses less than random orders (Michel et al. 2019, section 4.1; the control is ours).

Null hypothesis: gradient scores say nothing, so that their order is as good as one more random order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headcount.claims.claim import Claim, Measurement, above
from headcount.claims.leads import beyond_chance, decided_by_leads, leading, random_orders, variance_of_order
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves, Lead
from headcount.statistics import Interval

_PAIR = ("gradient", "random")


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    reason = "no curve by gradient scores beside random orders with steps from 15 to 65%"
    measurement = decided_by_leads(models, [_PAIR], reason)
    if not measurement.models:
        return measurement
    rows = leading(models, _PAIR)
    orders = sum(random_orders(curves) for curves, _ in rows)
    if orders == 1:  # another order would differ by chance
        measurement = replace(measurement, holds=None)
    elif len(rows) == 1:
        interval = _beyond_chance(*rows[0])
        measurement = replace(measurement, interval=interval, holds=above(interval, 0.0))
    return replace(measurement, runs=orders, detail=f"{measurement.detail}; runs: random orders, others in each model")


def _beyond_chance(curves: Curves, lead: Lead) -> Interval:
    """The lead of one model, with an interval that one more random order is in."""
    orders, of_order = random_orders(curves), variance_of_order(curves, "gradient") or 0.0
    return beyond_chance(curves, lead, (lead.variance or {}).get("examples", 0.0), of_order * (1 + 1 / orders))


CLAIM = Claim(
    number="M5",
    sentence="Removing heads by gradient score is better than removing them in random order.",
    where="section 4.1 has the score; random order is our control",
    statistic="metric by gradient order less the mean of random orders, mean of the steps from 15 to 65%; above 0",
    part="curves",
    changed_by="more models; of one model, the interval has what a random order differs by from the mean of others",
    measure=_measure,
)
