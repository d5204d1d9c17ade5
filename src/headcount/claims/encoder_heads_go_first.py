"""V10: encoder heads are pruned first and cross-attention heads last (Voita et al. 2019, section 6.3.2, Figure 9)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from headcount.claims.claim import Claim, Measurement, above, least, missing, over_seeds
from headcount.claims.pruned import Pruning, of_kind, prunings, seeds_of, unsettled
from headcount.claims.studied import StudiedModel
from headcount.statistics import Interval

KINDS = ("encoder", "decoder", "cross")  # the first to go first


def shares(pruning: Pruning, heads: Sequence[str]) -> dict[str, float]:
    """Kind -> share of its heads that remain."""
    return {kind: len(of_kind(heads, kind)) / len(of_kind(pruning.heads, kind)) for kind in KINDS}


def by_seed(pruning: Pruning, values: Sequence[float], grain: float) -> Interval:
    """The mean over budgets and seeds, with an interval over seeds; a single seed has no interval."""
    seeds = sorted({model.seed for model in pruning.models})
    means = [
        [value for model, value in zip(pruning.models, values, strict=True) if model.seed == seed] for seed in seeds
    ]
    return over_seeds([sum(of_seed) / len(of_seed) for of_seed in means], grain=grain)


def of_all_kinds(models: Sequence[StudiedModel]) -> list[Pruning]:
    """Trade-offs over the three kinds of an encoder-decoder."""
    everyone = [pruning for model in models for pruning in prunings(model, all_kinds=True) if pruning.heads]
    return [pruning for pruning in everyone if all(of_kind(pruning.heads, kind) for kind in KINDS)]


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = of_all_kinds(models)
    if not studied:
        return missing("no trade-off with gates on heads of all kinds of an encoder-decoder")
    tables = [[shares(pruning, model.heads) for model in pruning.models] for pruning in studied]
    pairs = list(combinations(KINDS, 2))
    grains = [1 / min(len(of_kind(pruning.heads, kind)) for pruning in studied for kind in pair) for pair in pairs]
    gaps = [
        [
            by_seed(pruning, [row[later] - row[earlier] for row in table], grain)
            for pruning, table in zip(studied, tables, strict=True)
        ]
        for (earlier, later), grain in zip(pairs, grains, strict=True)
    ]
    interval = least(gaps, units=max(seeds_of(studied[0]), 2), grains=grains)
    rows = [row for table in tables for row in table]
    left = ", ".join(f"{sum(row[kind] for row in rows) / len(rows):.0%} of {kind}" for kind in KINDS)
    seeds = sum(map(seeds_of, studied))
    detail = f"left on average: {left}{unsettled(studied)}"
    return Measurement(interval, above(interval, 0.0), len(studied), seeds, detail)


CLAIM = Claim(
    number="V10",
    sentence="When heads of all kinds may go, encoder heads go first and cross-attention heads last.",
    where="section 6.3.2, Figure 9",
    statistic=(
        "share of heads left, mean over budgets and seeds: smallest of decoder less encoder, cross attention less "
        "encoder, and cross attention less decoder; above 0"
    ),
    part="all-kinds",
    changed_by="more seeds or models: one seed has no interval",
    measure=_measure,
    bounds=(-1.0, 1.0),
)
