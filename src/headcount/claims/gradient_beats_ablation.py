"""M6: the gradient order loses less than the order of single ablations (Michel et al. 2019, section 4.2, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, above, difference, missing, pooled
from headcount.claims.steps import between, lost, ordered_by
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves
from headcount.statistics import Interval


def _lead(curves: Curves) -> Interval | None:
    """What single ablation loses more, from 20 to 60%; an unpaired interval, wider than a paired one."""
    losses = []
    for order in ("ablation", "gradient"):
        curve = ordered_by(curves, order)
        middle = between(curve.points, 0.15, 0.65) if curve else []
        if not middle:
            return None
        losses.append(lost(middle, curves.value, higher_is_better=curves.higher_is_better))
    return difference(*losses)


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    curves = [(parts, lead) for model in models if (parts := model.first(Curves)) and (lead := _lead(parts))]
    if not curves:
        return missing("no curves by both orders, gradient and ablation")
    interval = pooled([lead for _, lead in curves])
    return Measurement(interval, above(interval, 0.0), len(curves), 1, f"{curves[0][0].metric}; not paired by example")


CLAIM = Claim(
    number="M6",
    paper="michel2019",
    sentence="Removing heads by gradient score is better than by what each costs alone.",
    where="section 4.2, Figure 3",
    statistic="metric by gradient order less that by single ablations, mean of the steps from 20 to 60%; above 0",
    command="headcount study curves MODEL --orders gradient,ablation --task TASK --data DATA --out DIR",
    part="curves",
    changed_by="more examples and models; a comparison paired by example",
    measure=_measure,
)
