"""M6: the gradient order loses less than the order of single ablations (Michel et al. 2019, section 4.2, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement
from headcount.claims.leads import decided_by_leads
from headcount.claims.studied import StudiedModel


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    return decided_by_leads(models, [("gradient", "ablation")], "no curves by both orders, gradient and ablation")


CLAIM = Claim(
    number="M6",
    sentence="Removing heads by gradient score is better than by what each costs alone.",
    where="section 4.2, Figure 3",
    statistic="metric by gradient order less that by single ablations on the same examples, mean of 20 to 60%; above 0",
    command="headcount study curves MODEL --orders gradient,ablation --task TASK --data DATA --out DIR",
    part="curves",
    changed_by="more examples and models",
    measure=_measure,
)
