"""replacement: how the ranking of heads depends on what replaces the output of a masked head.

zero: zeros. mean: the head's mean output, so that only its variation is lost. resample: its output for another example
of the batch, so that the layers above get typical input.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.heads import sites_of
from headcount.probes.masks import Means, Replace, masked
from headcount.probes.means import mean_outputs
from headcount.probes.runs import site_runs
from headcount.progress import Progress, silent
from headcount.record import Record, Signature
from headcount.record.results.replacement import Replacements
from headcount.scores.ablation import effects
from headcount.scores.variants import Outcome, idle, one_out
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import Draws, evaluating
from headcount.statistics import spearman
from headcount.tasks.batch import Batch, rows_of
from headcount.tasks.task import Task

REPLACEMENTS = ("zero", "mean", "resample")


def replacements(
    model: nn.Module,
    task: Task,
    *,
    calibration: Task | None = None,
    name: str = "",
    alpha: float = 0.01,
    progress: Progress = silent,
) -> Record[Replacements]:
    """Replace every head alone in each way on `task`. Means are over `calibration`, by default over the task."""
    if not task.in_one_run:
        raise UsageError(
            f"Replacements need a metric of a single forward pass; {task.metric.name} is not one. Use the loss."
        )
    metric = task.metric
    source = calibration or task
    means = mean_outputs(model, source.batches(), run=source.nll)
    outcomes = _outcomes(model, task, means, progress)
    ran_H = ~np.isnan(outcomes["zero"].variants).all((1, 2))  # of other heads nothing is known
    heads = [head for head, ran in zip(locate(model).heads, ran_H, strict=True) if ran]
    by_replacement = {
        replacement: effects(metric, Outcome(outcome.base, outcome.variants[ran_H]), alpha=alpha)
        for replacement, outcome in outcomes.items()
    }
    differences = {name: [effect.difference for effect in rows] for name, rows in by_replacement.items()}
    parts = Replacements(
        metric=metric.name,
        higher_is_better=metric.higher_is_better,
        value=metric.of(outcomes["zero"].base),
        alpha=alpha,
        effects={
            replacement: {str(head): effect for head, effect in zip(heads, rows, strict=True)}
            for replacement, rows in by_replacement.items()
        },
        significant={
            replacement: sum(effect.corrected < alpha for effect in rows)
            for replacement, rows in by_replacement.items()
        },
        rank_correlations={
            f"{left} / {other}": spearman(differences[left], differences[other], groups=sites_of(heads))
            for left, other in combinations(by_replacement, 2)
        },
    )
    arguments = {"metric": metric.name, "alpha": alpha, "calibration": source.fingerprint}
    return Record("replacement", Signature(name, weight_hash(model), task.fingerprint, arguments=arguments), parts)


def _batches(task: Task) -> list[Batch]:
    """The batches of a task; if one has a single example, which none could replace, as many of others, by length."""
    batches = list(task.batches())
    if not task.trains or all(rows_of(batch) > 1 for batch in batches):
        return batches
    order_N = np.argsort(task.lengths.max(1), kind="stable")
    return [task.batch(rows) for rows in np.array_split(order_N, max(1, min(len(batches), len(order_N) // 2)))]


def _outcomes(model: nn.Module, task: Task, means: Means, progress: Progress) -> dict[str, Outcome]:
    """For each replacement, the statistics of every example with all heads, and with each head replaced."""
    sites, batches = locate(model), _batches(task)
    ways: dict[str, Replace] = {"zero": "zero", "mean": means, "resample": "resample"}
    base: list[np.ndarray] = []
    rows: dict[str, list[np.ndarray]] = {replacement: [] for replacement in REPLACEMENTS}
    with evaluating(model), site_runs(model) as runs:
        for count, batch in enumerate(batches, start=1):
            draws = Draws(model)
            base.append(task.measure(model, batch))
            for replacement in REPLACEMENTS:
                variants = []
                for head in sites.heads:
                    if head.site not in means:  # it did not run, nor on the data of the means
                        variants.append(np.full(base[-1].shape, np.nan))
                        continue
                    draws.again()
                    with masked(model, sites.mask(off=head), replace=ways[replacement]):
                        variants.append(task.measure(model, batch))
                rows[replacement].append(np.stack(variants))
            progress("replacing heads", count, len(batches))
    if not base:
        raise UsageError("The task has no batches: there is nothing to measure on.")
    by_replacement = {replacement: np.concatenate(parts, axis=1) for replacement, parts in rows.items()}
    idle_H = idle(model, one_out(model), runs)
    return {
        replacement: Outcome(np.concatenate(base), np.where(idle_H[:, None, None], np.nan, variants_HNC))
        for replacement, variants_HNC in by_replacement.items()
    }
