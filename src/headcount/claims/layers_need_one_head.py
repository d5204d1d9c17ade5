"""M2: for most layers one head is enough (Michel et al. 2019, section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headcount.claims.claim import Claim, Measurement, missing
from headcount.claims.most_heads_can_go import ablations
from headcount.claims.shares import (
    TOO_FEW,
    can_harm,
    cannot_harm,
    decided_by_share,
    is_harmless,
    share_of_layers,
    unless_noticed,
)
from headcount.claims.steps import SEEN
from headcount.claims.studied import StudiedModel
from headcount.record.results.ablate import Ablation, BestAlone


def _best_heads(parts: Ablation) -> Mapping[str, BestAlone]:
    """Best heads on examples that they were not chosen on; none if there are no such examples."""
    return (parts.all_but_one if parts.alone_held_out else parts.all_but_one_chosen_elsewhere) or {}


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    results, seen = ablations(models)
    studied = [parts for parts in results if not parts.distance]
    held_out = [(parts, best) for parts in studied if (best := _best_heads(parts))]
    if not held_out:
        reason = "the head was chosen on the examples it is measured on" if studied else SEEN if seen else ""
        return missing(reason or "no record of ablation by a metric that is no distance")
    held_out = [(parts, best) for parts, best in held_out if can_harm(parts, best.values())]
    if not held_out:
        return missing(TOO_FEW)
    counts = [(sum(is_harmless(parts, row) for row in best.values()), len(best)) for parts, best in held_out]
    certain = [(sum(cannot_harm(parts, row) for row in best.values()), len(best)) for parts, best in held_out]
    interval = unless_noticed(share_of_layers(counts), share_of_layers(certain))
    return decided_by_share(interval, counts, 0.5, "layers of all kinds")


CLAIM = Claim(
    number="M2",
    sentence="Most layers do as well with one of their heads.",
    where="section 3.3, Tables 2 and 3; appendix A, Tables 5 and 6, if the head is chosen on other data",
    statistic=(
        "share of the layers whose best head alone is not significantly worse, the head chosen on other examples than "
        "it is measured on; above .5, also of those alone for which a loss of 5% of the score is excluded"
    ),
    part="ablation",
    changed_by="more layers: the interval is over layers; more examples find smaller losses significant",
    measure=_measure,
    bounds=(0.0, 1.0),
)
