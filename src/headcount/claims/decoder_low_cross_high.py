"""V11: decoder heads remain in low layers, cross-attention heads in high ones (Voita et al. 2019, Figure 10)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.claims.claim import Claim, Measurement, all_above, missing, pooled
from headcount.claims.encoder_heads_go_first import by_seed, of_all_kinds
from headcount.claims.pruned import Pruning, num_runs, of_kind, unsettled_notes
from headcount.claims.studied import StudiedModel


def _depth(pruning: Pruning, heads: Sequence[str], kind: str) -> float:
    """Mean layer of the remaining heads minus that of all heads of the kind, relative to its depth; NaN without any."""
    layers = [head.layer for head in of_kind(pruning.heads, kind)]
    left = [head.layer for head in of_kind(heads, kind)]
    return float((np.mean(left) - np.mean(layers)) / max(*layers, 1)) if left else float("nan")


def _is_deep(pruning: Pruning) -> bool:
    return all(len({head.layer for head in of_kind(pruning.heads, kind)}) > 1 for kind in ("decoder", "cross"))


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = of_all_kinds(models)
    if not studied:
        return missing("no trade-off with gates on heads of all kinds of an encoder-decoder")
    studied = [pruning for pruning in studied if _is_deep(pruning)]
    if not studied:
        return missing("the decoder has one layer, which is neither low nor high")
    firsts, seconds = [], []
    for pruning in studied:
        decoder, cross = (
            [_depth(pruning, model.heads, kind) for model in pruning.models] for kind in ("decoder", "cross")
        )
        firsts.append(by_seed(pruning, [-value for value in decoder]))
        seconds.append(by_seed(pruning, cross))
    lower, higher = pooled(firsts), pooled(seconds)
    if np.isnan(lower.value) or np.isnan(higher.value):
        return missing("a pruned model has no decoder or no cross-attention head left: keep more heads")
    holds = all_above((lower, higher), 0.0)
    weaker = min(lower, higher, key=lambda interval: interval.value)
    detail = (
        f"against the middle of the stack: decoder {-lower.value:+.2f}, cross {higher.value:+.2f} of its depth"
        f"{unsettled_notes(studied)}"
    )
    return Measurement(weaker, holds, len(studied), num_runs(studied), detail)


CLAIM = Claim(
    number="V11",
    sentence="Decoder self-attention heads stay in the lower layers, cross-attention heads in the higher ones.",
    where="section 6.3.2, Figure 10",
    statistic=(
        "mean layer of the heads left against that of all, as a share of the depth: of the decoder downwards, of "
        "cross attention upwards, whichever is smaller; both above 0"
    ),
    command="headcount study tradeoff MODEL --keep 10,7 --ways l0 --seeds 0,1,2 --task TASK --data DATA --out DIR",
    part="all-kinds",
    changed_by="a deeper decoder; more seeds or models: one seed has no interval",
    measure=_measure,
)
