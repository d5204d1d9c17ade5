"""M7: removing heads harms cross-attention most (Michel et al. 2019, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement
from headcount.claims.leads import decided_by_leads
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves

CROSS = "cross"


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    kinds = [curve.kinds[0] for model in models if (curves := model.first(Curves)) for curve in curves.by_kind or ()]
    pairs = [(kind, CROSS) for kind in dict.fromkeys(kinds) if kind != CROSS]
    return decided_by_leads(models, pairs, "no curves of each kind alone of a model with cross attention")


CLAIM = Claim(
    number="M7",
    sentence="Cross attention is the kind that suffers most when more than 60% of its heads go.",
    where="section 5, Figure 4",
    statistic=(
        "loss of the metric beyond 60% of the kind's heads on the same examples, cross attention less each other "
        "kind, the smallest; above 0"
    ),
    part="curves",
    changed_by="models whose encoder has few heads; more examples and models",
    measure=_measure,
)
