"""V12: the same heads trained from scratch do worse than the pruned model (Voita et al. 2019, section 6.3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, above, difference, missing, pooled
from headcount.claims.pruned import Pruning, prunings
from headcount.claims.studied import StudiedModel
from headcount.metrics import COSINE_DISTANCE, LOSS, PERPLEXITY
from headcount.record.results.train import TrainingRun
from headcount.statistics import Interval

_LOWER_IS_BETTER = {metric.name for metric in (LOSS, PERPLEXITY, COSINE_DISTANCE)}


def _lead(pruning: Pruning) -> Interval:
    """By seed where there are several; else by the examples' intervals, as if they were other examples."""
    sign = -1 if pruning.metric in _LOWER_IS_BETTER else 1
    pairs = {
        seed: [difference(pair.trained, pair.scratch) for pair in pruning.pairs if pair.seed == seed]
        for seed in sorted({pair.seed for pair in pruning.pairs})
    }
    mean = pooled([_mean_of_budgets(rows) for rows in pairs.values()])
    return mean if sign > 0 else Interval(-mean.value, -mean.high, -mean.low)


def _mean_of_budgets(rows: Sequence[Interval]) -> Interval:
    """Budgets are measured on the same examples: their ends are averaged, not narrowed."""
    return Interval(*(sum(ends) / len(rows) for ends in zip(*rows, strict=True)))


def _steps(run: TrainingRun | None, pruning: Pruning) -> str:
    trained_steps = "an unknown number" if run is None else str(run.steps)
    return f"{pruning.scratch_steps} steps from scratch, the model itself had {trained_steps}"


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = [
        (model.first(TrainingRun), pruning)
        for model in models
        for pruning in prunings(model, all_kinds=True)
        if pruning.pairs
    ]
    if not studied:
        return missing("no trade-off over all kinds with models trained from scratch")
    interval = pooled([_lead(pruning) for _, pruning in studied])
    enough = all(run is not None and pruning.scratch_steps >= run.steps for run, pruning in studied)
    holds = above(interval, 0.0)
    if not enough and holds:  # a short training would explain it too
        holds = None
    runs = sum(len({pair.seed for pair in pruning.pairs}) for _, pruning in studied)
    return Measurement(interval, holds, len(studied), runs, f"{studied[0][1].metric}; {_steps(*studied[0])}")


CLAIM = Claim(
    number="V12",
    paper="voita2019",
    sentence="A model trained from scratch with the heads of a pruned one is worse than the pruned one.",
    where="section 6.3.1, Table 2",
    statistic="quality of the pruned model less that of the model from scratch, mean over budgets and seeds; above 0",
    command="headcount study tradeoff MODEL --keep 28 --ways l0,scratch --seeds 0,1 --task TASK --data DATA --out DIR",
    part="all-kinds",
    changed_by="as many steps from scratch as the model had; more seeds",
    measure=_measure,
)
