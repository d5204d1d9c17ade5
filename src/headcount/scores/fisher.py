"""fisher: the squared gradient of the loss with respect to each head's mask, summed over data (Kwon et al. 2022)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import numpy as np
from torch import nn

from headcount.errors import UnknownName, UsageError
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.scores.gradient import batch_gradients, check_gradient, example_gradients
from headcount.scores.pieces import shelf, summed
from headcount.scores.score import Scores, scores
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.tasks.task import Batch, Task

Granularity = Literal["example", "batch"]  # whose gradient is squared; the authors' code uses batches of 32


def fisher(
    model: nn.Module,
    task: Task | None,
    *,
    granularity: Granularity = "example",
    normalize: bool = False,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Scores:
    """Sum of squared gradients at mask 1: the diagonal of the empirical Fisher information.

    folder: for unfinished work, from which the same call resumes.
    """
    if task is None:
        raise UsageError("The fisher score needs a task: the data whose loss the heads are to serve.")
    check_gradient(task)
    if granularity not in get_args(Granularity):
        raise UnknownName("granularity", granularity, get_args(Granularity))
    heads = locate(model).heads
    measure = example_gradients if granularity == "example" else batch_gradients

    def contributed(batch: Batch) -> dict[str, np.ndarray]:
        return {"squares": np.square(measure(model, task, batch)[0]).sum(0)}

    arguments = {"score": "fisher", "granularity": granularity, "normalize": normalize}
    signature = Signature(weights=weight_hash(model), data=task.fingerprint, arguments=arguments)
    finished = shelf(folder, task, {"weights": signature.weights, "data": signature.data, **arguments})
    with evaluating(model, gradients=True):
        total_H = summed(task.batches(), contributed, finished=finished, progress=progress)["squares"]
    if finished:
        finished.clear()
    return scores(heads, total_H, signature, normalize=normalize)


SCORE = fisher
