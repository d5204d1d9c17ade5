"""M1: most heads can be removed one at a time (Michel et al. 2019, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, missing
from headcount.claims.shares import (
    TOO_FEW,
    can_harm,
    cannot_harm,
    decided_by_share,
    is_harmless,
    share_of_heads,
    unless_noticed,
)
from headcount.claims.steps import SEEN
from headcount.claims.studied import StudiedModel
from headcount.record.results.ablate import Ablation


def ablations(models: Sequence[StudiedModel]) -> tuple[list[Ablation], bool]:
    """Ablation on examples that the heads of a pruned model were hardly chosen on, and whether others were left out."""
    results = [parts for model in models if (parts := model.first(Ablation))]
    held_out = [parts for parts in results if parts.measured_on is None or not parts.measured_on.much_seen]
    return held_out, len(held_out) < len(results)


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    results, seen = ablations(models)
    studied = [parts for parts in results if not parts.distance]
    if not studied:
        return missing(SEEN if seen else "no record of ablation by a metric that is no distance")
    studied = [parts for parts in studied if can_harm(parts, parts.one_out.values())]
    if not studied:
        return missing(TOO_FEW)
    harmless = [{head: is_harmless(parts, effect) for head, effect in parts.one_out.items()} for parts in studied]
    counts = [(sum(heads.values()), len(heads)) for heads in harmless]
    certain = [{head: cannot_harm(parts, effect) for head, effect in parts.one_out.items()} for parts in studied]
    interval, lower = (share_of_heads([[heads] for heads in models]) for models in (harmless, certain))
    return decided_by_share(unless_noticed(interval, lower), counts, 0.5, f"heads, p of {studied[0].alpha:g}")


CLAIM = Claim(
    number="M1",
    sentence="Most heads can be removed, one at a time, without making the model significantly worse.",
    where="section 3.2, Table 1",
    statistic=(
        "share of the heads whose removal makes the metric worse at no p below alpha, uncorrected; above .5, also of "
        "those alone for which a loss of 5% of the score is excluded"
    ),
    part="ablation",
    changed_by="more examples find smaller losses significant; more layers and heads narrow the interval",
    measure=_measure,
    bounds=(0.0, 1.0),
)
