"""M7: cross attention suffers most when its heads go (Michel et al. 2019, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, above, difference, missing, pooled
from headcount.claims.steps import between, lost
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves
from headcount.statistics import Interval


def _lead(curves: Curves) -> Interval | None:
    """What is lost without cross-attention heads, less the most that is lost without those of another kind."""
    losses = {
        curve.kinds[0]: lost(points, curves.value, higher_is_better=curves.higher_is_better)
        for curve in curves.by_kind or ()
        if (points := between(curve.points, 0.6 + 1e-6, 1.0))
    }
    if "cross" not in losses or len(losses) < 2:
        return None
    worst = max((kind for kind in losses if kind != "cross"), key=lambda kind: losses[kind].value)
    return difference(losses["cross"], losses[worst])


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    curves = [(parts, lead) for model in models if (parts := model.first(Curves)) and (lead := _lead(parts))]
    if not curves:
        return missing("no curves of each kind alone of a model with cross attention")
    interval = pooled([lead for _, lead in curves])
    return Measurement(interval, above(interval, 0.0), len(curves), 1, f"{curves[0][0].metric}; not paired by example")


CLAIM = Claim(
    number="M7",
    paper="michel2019",
    sentence="Cross attention is the kind that suffers most when more than 60% of its heads go.",
    where="section 5, Figure 4",
    statistic="loss of the metric beyond 60% of the kind's heads, cross attention less the next worst kind; above 0",
    command="headcount study curves MODEL --task translation --data DATA --out DIR",
    part="curves",
    changed_by="models whose encoder has few heads; a comparison paired by example",
    measure=_measure,
)
