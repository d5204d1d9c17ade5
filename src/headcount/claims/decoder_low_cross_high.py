"""V11: decoder heads remain in low layers, cross-attention heads in high ones (Voita et al. 2019, Figure 10)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.claims.claim import Claim, Measurement, above, missing, pooled
from headcount.claims.encoder_heads_go_first import by_seed, of_all_kinds
from headcount.claims.pruned import Pruning, of_kind
from headcount.claims.studied import StudiedModel


def _depth(pruning: Pruning, heads: Sequence[str], kind: str) -> float:
    """Mean layer of the remaining heads minus that of all heads of the kind, relative to its depth; NaN without any."""
    layers = [head.layer for head in of_kind(pruning.heads, kind)]
    left = [head.layer for head in of_kind(heads, kind)]
    return float((np.mean(left) - np.mean(layers)) / max(*layers, 1)) if left else float("nan")


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = of_all_kinds(models)
    if not studied:
        return missing("no trade-off with gates on heads of all kinds of an encoder-decoder")
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
    verdicts = (above(lower, 0.0), above(higher, 0.0))
    holds = True if all(verdicts) else False if False in verdicts else None
    weaker = min(lower, higher, key=lambda interval: interval.value)
    detail = (
        f"against the middle of the stack: decoder {-lower.value:+.2f}, cross {higher.value:+.2f} of its depth"
        f"{''.join(dict.fromkeys(pruning.unsettled for pruning in studied))}"
    )
    seeds = sum(len({model.seed for model in pruning.models}) for pruning in studied)
    return Measurement(weaker, holds, len(studied), seeds, detail)


CLAIM = Claim(
    number="V11",
    paper="voita2019",
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
