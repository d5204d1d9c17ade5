"""M5: the gradient order loses less than random orders (Michel et al. 2019, section 4.1; the control is ours)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headcount.claims.claim import Claim, Measurement
from headcount.claims.leads import decided_by_leads
from headcount.claims.steps import studied
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    reason = "no curve by gradient scores beside random orders with steps from 20 to 60%"
    measurement = decided_by_leads(models, [("gradient", "random")], reason)
    if not measurement.models:
        return measurement
    orders = sum(curve.order == "random" for curves in studied(models, Curves)[0] for curve in curves.curves)
    if orders == 1:  # another order would differ by chance
        measurement = replace(measurement, holds=None)
    return replace(measurement, runs=orders, detail=f"{measurement.detail}; runs: random orders, others in each model")


CLAIM = Claim(
    number="M5",
    sentence="Removing heads by gradient score is better than removing them in random order.",
    where="section 4.1 has the score; random order is our control",
    statistic="metric by gradient order less the mean of random orders, mean of 20 to 60%; above 0",
    command="headcount study curves MODEL --task TASK --data DATA --random 10 --out DIR",
    part="curves",
    changed_by="more random orders: below ten the interval is a t-interval over them, a single one leaves it open",
    measure=_measure,
)
