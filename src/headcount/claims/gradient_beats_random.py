"""M5: the gradient order loses less than random orders (Michel et al. 2019, section 4.1; the control is ours).

Null hypothesis: gradient scores say nothing, so that their order is as good as one more random order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headcount.claims.claim import Claim, Measurement, above
from headcount.claims.leads import decided_by_leads, lead_of
from headcount.claims.steps import studied
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves, Lead
from headcount.statistics import Interval, half_width

_PAIR = ("gradient", "random")


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    reason = "no curve by gradient scores beside random orders with steps from 20 to 60%"
    measurement = decided_by_leads(models, [_PAIR], reason)
    if not measurement.models:
        return measurement
    leading = [(curves, lead) for curves in studied(models, Curves)[0] if (lead := lead_of(curves, *_PAIR))]
    orders = sum(curve.order == "random" for curves, _ in leading for curve in curves.curves)
    if orders == 1:  # another order would differ by chance
        measurement = replace(measurement, holds=None)
    elif len(leading) == 1:
        interval = _beyond_chance(leading[0][1], orders)
        measurement = replace(measurement, interval=interval, holds=above(interval, 0.0))
    return replace(measurement, runs=orders, detail=f"{measurement.detail}; runs: random orders, others in each model")


def _beyond_chance(lead: Lead, orders: int) -> Interval:
    """The lead of one model, with an interval that one more random order is in.

    The order by gradient is a single one, and a random one differs from the mean of the others by chance too. Several
    models have several such orders: their leads vary between models.
    """
    parts = lead.variance or {}
    of_order = orders * parts.get("seeds", 0.0)  # the mean of all has this divided by their number
    half = float(half_width((of_order * (1 + 1 / orders) + parts.get("examples", 0.0)) ** 0.5, orders))
    return Interval(lead.value, min(lead.low, lead.value - half), max(lead.high, lead.value + half))


CLAIM = Claim(
    number="M5",
    sentence="Removing heads by gradient score is better than removing them in random order.",
    where="section 4.1 has the score; random order is our control",
    statistic="metric by gradient order less the mean of random orders, mean of 20 to 60%; above 0",
    command="headcount study curves MODEL --task TASK --data DATA --random 10 --out DIR",
    part="curves",
    changed_by="more models; of one model, the interval has what a random order differs by from the mean of others",
    measure=_measure,
)
