"""M5: the gradient order loses less than random orders (Michel et al. 2019, section 4.1; the control is ours)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, above, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves
from headcount.statistics import Interval


def _weakest(curves: Curves) -> Interval | None:
    """The gain at the step from 20 to 60% where it is least clear."""
    gains = [gain for gain in curves.against_random.get("gradient", ()) if 0.15 <= gain.share <= 0.65]
    if not gains:
        return None
    weakest = min(gains, key=lambda gain: gain.low)
    return Interval(weakest.value, weakest.low, weakest.high)


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    curves = [(parts, gain) for model in models if (parts := model.first(Curves)) and (gain := _weakest(parts))]
    if not curves:
        return missing("no curve by gradient scores beside random orders with steps from 20 to 60%")
    interval = pooled([gain for _, gain in curves])
    orders = sum(parts.against_random["gradient"][0].random for parts, _ in curves)
    detail = f"{curves[0][0].metric}; runs: random orders"
    return Measurement(interval, above(interval, 0.0), len(curves), orders, detail)


CLAIM = Claim(
    number="M5",
    sentence="Removing heads by gradient score is better than removing them in random order.",
    where="section 4.1 has the score; random order is our control",
    statistic="metric by gradient order less the mean of random orders, at the least clear step of 20 to 60%; above 0",
    command="headcount study curves MODEL --task TASK --data DATA --random 10 --out DIR",
    part="curves",
    changed_by="more random orders: below ten the interval is a t-interval over them",
    measure=_measure,
)
