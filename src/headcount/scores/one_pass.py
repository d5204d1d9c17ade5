"""The mean of a value over examples as a score, with its standard error; resumable and shared by processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from torch import nn

from headcount.progress import Progress
from headcount.record import Signature
from headcount.scores.gradient import standard_error
from headcount.scores.pieces import shelf, summed
from headcount.scores.score import Scores, scores
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.tasks.task import Batch, Task


def mean_over_examples(
    model: nn.Module,
    task: Task,
    values_of: Callable[[Batch], np.ndarray],
    arguments: Mapping[str, object],
    *,
    folder: Path | None,
    progress: Progress,
) -> Scores:
    """The mean of a value per example and head.

    values_of: function from a batch to [B, H]. arguments: of the signature, including `normalize`.
    folder: for unfinished work, from which the same call resumes.
    """

    def contributed(batch: Batch) -> dict[str, np.ndarray]:
        values_BH = values_of(batch)
        count = np.array(float(len(values_BH)))
        return {"total": values_BH.sum(0), "squares": np.square(values_BH).sum(0), "count": count}

    signature = Signature(weights=weight_hash(model), data=task.fingerprint, arguments=dict(arguments))
    finished = shelf(folder, task, {"weights": signature.weights, "data": signature.data, **arguments})
    with evaluating(model, gradients=True):
        sums = summed(task.batches(), contributed, finished=finished, progress=progress)
    if finished:
        finished.clear()
    mean_H = sums["total"] / sums["count"]
    error_H = standard_error(mean_H, sums["squares"], sums["count"])
    return scores(locate(model).heads, mean_H, signature, error=error_H, normalize=bool(arguments["normalize"]))
