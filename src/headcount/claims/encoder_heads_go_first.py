"""V10: encoder heads are pruned first and cross-attention heads last (Voita et al. 2019, section 6.3.2, Figure 9)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, all_above, missing, pooled
from headcount.claims.pruned import Pruning, num_runs, of_kind, prunings, unsettled_notes
from headcount.claims.studied import StudiedModel
from headcount.statistics import Interval, mean_interval

KINDS = ("encoder", "decoder", "cross")


def shares(pruning: Pruning, heads: Sequence[str]) -> dict[str, float]:
    """Kind -> share of its heads that remain."""
    return {kind: len(of_kind(heads, kind)) / len(of_kind(pruning.heads, kind)) for kind in KINDS}


def by_seed(pruning: Pruning, values: Sequence[float]) -> Interval:
    """The mean over budgets and seeds, with an interval over seeds; a single seed has no interval."""
    seeds = sorted({model.seed for model in pruning.models})
    means = [
        [value for model, value in zip(pruning.models, values, strict=True) if model.seed == seed] for seed in seeds
    ]
    return mean_interval([sum(of_seed) / len(of_seed) for of_seed in means])


def of_all_kinds(models: Sequence[StudiedModel]) -> list[Pruning]:
    """Trade-offs over the three kinds of an encoder-decoder."""
    everyone = [pruning for model in models for pruning in prunings(model, all_kinds=True) if pruning.sites]
    return [pruning for pruning in everyone if all(of_kind(pruning.heads, kind) for kind in KINDS)]


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = of_all_kinds(models)
    if not studied:
        return missing("no trade-off with gates on heads of all kinds of an encoder-decoder")
    tables = [[shares(pruning, model.heads) for model in pruning.models] for pruning in studied]
    gaps = [
        by_seed(pruning, [min(row["cross"], row["decoder"]) - row["encoder"] for row in table])
        for pruning, table in zip(studied, tables, strict=True)
    ]
    lasts = [
        by_seed(pruning, [row["cross"] - max(row["encoder"], row["decoder"]) for row in table])
        for pruning, table in zip(studied, tables, strict=True)
    ]
    encoder_gap, last = pooled(gaps), pooled(lasts)
    weaker = min(encoder_gap, last, key=lambda interval: interval.value)
    rows = [row for table in tables for row in table]
    left = ", ".join(f"{sum(row[kind] for row in rows) / len(rows):.0%} of {kind}" for kind in KINDS)
    holds = all_above((encoder_gap, last), 0.0)
    detail = f"left on average: {left}{unsettled_notes(studied)}"
    return Measurement(weaker, holds, len(studied), num_runs(studied), detail)


CLAIM = Claim(
    number="V10",
    sentence="When heads of all kinds may go, encoder heads go first and cross-attention heads last.",
    where="section 6.3.2, Figure 9",
    statistic=(
        "share of heads left, mean over budgets: of the other kinds less of the encoder, and of cross attention less "
        "of the other kinds, whichever is smaller; both above 0"
    ),
    command="headcount study tradeoff MODEL --keep 10,7 --ways l0 --seeds 0,1,2 --task TASK --data DATA --out DIR",
    part="all-kinds",
    changed_by="more seeds or models: one seed has no interval",
    measure=_measure,
)
