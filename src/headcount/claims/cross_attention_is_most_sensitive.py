"""M7: removing heads harms cross-attention most (Michel et al. 2019, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement
from headcount.claims.of_curves import decided_by_lead, lead_of
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves
from headcount.statistics import Interval

CROSS = "cross"


def _lead_of_next_worst(curves: Curves) -> Interval | None:
    """How much better the model is without heads of the next worst kind than without those of cross attention."""
    kinds = [curve.kinds[0] for curve in curves.by_kind or ()]
    leads = [lead for kind in kinds if (lead := lead_of(curves, kind, CROSS)) is not None]
    return min(leads, key=lambda lead: lead.value) if leads else None


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    return decided_by_lead(models, _lead_of_next_worst, "no curves of each kind alone of a model with cross attention")


CLAIM = Claim(
    number="M7",
    sentence="Cross attention is the kind that suffers most when more than 60% of its heads go.",
    where="section 5, Figure 4",
    statistic=(
        "loss of the metric beyond 60% of the kind's heads on the same examples, cross attention less the next worst "
        "kind; above 0"
    ),
    command="headcount study curves MODEL --task translation --data DATA --out DIR",
    part="curves",
    changed_by="models whose encoder has few heads; more examples and models",
    measure=_measure,
)
