"""V11: decoder heads remain in low layers, cross-attention heads in high ones (Voita et al. 2019, Figure 10)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.claims.claim import Claim, Measurement, above, least, missing, over_seeds
from headcount.claims.encoder_heads_go_first import of_all_kinds
from headcount.claims.pruned import Pruning, of_kind, seeds_of, unsettled
from headcount.claims.studied import StudiedModel
from headcount.statistics import Interval


def _grain(pruning: Pruning, kind: str) -> float:
    """What one head in the next layer changes, with as many heads as are left on average."""
    left = [len(of_kind(model.heads, kind)) for model in pruning.models]
    return 1 / max(sum(left) / seeds_of(pruning), 1) / max(head.layer for head in of_kind(pruning.heads, kind))


def _depth(pruning: Pruning, kind: str) -> Interval | None:
    """Mean layer of the remaining heads minus that of all heads of the kind, relative to its depth.

    Heads of all budgets of a seed are taken together, as a small budget may leave no head of a kind. The interval is
    over seeds; None if no seed leaves a head.
    """
    layers = [head.layer for head in of_kind(pruning.heads, kind)]
    by_seed: dict[int, list[int]] = {}
    for model in pruning.models:
        by_seed.setdefault(model.seed, []).extend(head.layer for head in of_kind(model.heads, kind))
    depths = [float(np.mean(left) - np.mean(layers)) / max(layers) for _, left in sorted(by_seed.items()) if left]
    return over_seeds(depths, grain=_grain(pruning, kind)) if depths else None


def _is_deep(pruning: Pruning) -> bool:
    return all(len({head.layer for head in of_kind(pruning.heads, kind)}) > 1 for kind in ("decoder", "cross"))


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = of_all_kinds(models)
    if not studied:
        return missing("no trade-off with gates on heads of all kinds of an encoder-decoder")
    studied = [pruning for pruning in studied if _is_deep(pruning)]
    if not studied:
        return missing("the decoder has one layer, which is neither low nor high")
    depths = [(pruning, _depth(pruning, "decoder"), _depth(pruning, "cross")) for pruning in studied]
    rows = [(pruning, decoder, cross) for pruning, decoder, cross in depths if decoder and cross]
    if not rows:
        return missing("the pruned models have no decoder or no cross-attention head left: keep more heads")
    lower = [Interval(-decoder.value, -decoder.high, -decoder.low) for _, decoder, _ in rows]
    higher = [cross for _, _, cross in rows]
    grains = [max(_grain(pruning, kind) for pruning, *_ in rows) for kind in ("decoder", "cross")]
    interval = least([lower, higher], units=max(seeds_of(rows[0][0]), 2), grains=grains)
    means = [float(np.mean([row.value for row in part])) for part in (lower, higher)]
    empty = f"; {len(depths) - len(rows)} without heads left of a kind" if len(rows) < len(depths) else ""
    detail = (
        f"against the middle of the stack: decoder {-means[0]:+.2f}, cross {means[1]:+.2f} of its depth{empty}"
        f"{unsettled([pruning for pruning, *_ in rows])}"
    )
    seeds = sum(seeds_of(pruning) for pruning, *_ in rows)
    return Measurement(interval, above(interval, 0.0), len(rows), seeds, detail)


CLAIM = Claim(
    number="V11",
    sentence="Decoder self-attention heads stay in the lower layers, cross-attention heads in the higher ones.",
    where="section 6.3.2, Figure 10",
    statistic=(
        "mean layer of the heads left, budgets together, against that of all, as a share of the depth: of the decoder "
        "downwards, of cross attention upwards, whichever is smaller; above 0"
    ),
    part="all-kinds",
    changed_by="a deeper decoder; more seeds or models: one seed has no interval",
    measure=_measure,
    bounds=(-1.0, 1.0),
)
