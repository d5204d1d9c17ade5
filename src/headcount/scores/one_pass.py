"""One pass: a score measured as sums over the batches of a task; resumable and shared by processes.

Shapes: N values (of examples, or of something else that is counted), H heads of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.progress import Progress
from headcount.record import Signature
from headcount.scores.pieces import Arrays, shelf, summed
from headcount.scores.score import Scores, scores
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.tasks.task import Batch, Task

Item = TypeVar("Item")


def loss_task(score: str, task: Task | None, *, gradients: bool = True) -> Task:
    """The task of a score of the loss. Raises if there is none, or if all its gradients are zero by definition."""
    if task is None:
        raise UsageError(f"The {score} score needs a task: the data whose loss the heads are to serve.")
    if gradients and task.stationary:
        raise UsageError(
            f"The {score} score is not defined for the task {task.name}: at the whole model the distance is at its "
            "minimum and every derivative is zero. Use the ablation score."
        )
    return task


def sums_over(
    items: Iterable[Item],
    contributed: Callable[[Item], Arrays],
    model: nn.Module,
    task: Task,
    arguments: Mapping[str, object],
    *,
    folder: Path | None,
    progress: Progress,
    seed: int | None = None,
    gradients: bool = True,
) -> tuple[dict[str, np.ndarray], Signature]:
    """The summed contributions of batches (or other items), and the signature of the score.

    arguments: of the signature. folder: for unfinished work, from which the same call resumes.
    """
    signature = Signature(weights=weight_hash(model), data=task.fingerprint, seed=seed, arguments=dict(arguments))
    work = {"weights": signature.weights, "data": signature.data, **({} if seed is None else {"seed": seed})}
    finished = shelf(folder, task, {**work, **arguments})
    with evaluating(model, gradients=gradients):
        sums = summed(items, contributed, finished=finished, progress=progress)
    if finished:
        finished.clear()
    return sums, signature


def moments(values_NH: np.ndarray, count: float | np.ndarray) -> Arrays:
    """What `mean_scores` needs, as a contribution to sums. count: what the sum of the values is divided by."""
    return {"total": values_NH.sum(0), "squares": np.square(values_NH).sum(0), "count": np.asarray(count, dtype=float)}


def mean_scores(
    model: nn.Module, sums: Arrays, signature: Signature, *, normalize: bool, interval: bool = True
) -> Scores:
    """Means of summed values as scores, with their standard error if values are of single examples."""
    count_H, mean_H = sums["count"], sums["total"] / sums["count"]
    variance_H = np.maximum(sums["squares"] / count_H - np.square(mean_H), 0)
    error_H = np.sqrt(variance_H / np.maximum(count_H - 1, 1)) if interval else None
    return scores(locate(model).heads, mean_H, signature, error=error_H, count=count_H, normalize=normalize)


def mean_over_examples(
    values_of: Callable[[Batch], np.ndarray],
    model: nn.Module,
    task: Task,
    arguments: Mapping[str, object],
    *,
    folder: Path | None,
    progress: Progress,
) -> Scores:
    """The mean of a value per example and head. values_of: function from a batch to [B, H]."""

    def contributed(batch: Batch) -> Arrays:
        values_BH = values_of(batch)
        return moments(values_BH, len(values_BH))

    sums, signature = sums_over(task.batches(), contributed, model, task, arguments, folder=folder, progress=progress)
    return mean_scores(model, sums, signature, normalize=bool(arguments["normalize"]))
