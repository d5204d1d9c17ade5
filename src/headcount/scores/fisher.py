"""fisher: the squared gradient of the loss with respect to each head's mask, summed over data (Kwon et al. 2022)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import numpy as np
from torch import nn

from headcount.errors import check_name
from headcount.progress import Progress, silent
from headcount.scores.gradient import batch_gradients, example_gradients
from headcount.scores.one_pass import loss_task, measured, sums_over
from headcount.scores.pieces import Arrays
from headcount.scores.score import Scores, scores
from headcount.sites.locate import locate
from headcount.tasks.batch import Batch
from headcount.tasks.task import Task

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
    task = loss_task("fisher", task)
    check_name("granularity", granularity, get_args(Granularity))
    measure = example_gradients if granularity == "example" else batch_gradients

    def contributed(batch: Batch) -> Arrays:
        return {"squares": np.square(measure(model, task, batch)[0]).sum(0)}

    arguments = {"score": "fisher", "granularity": granularity, "normalize": normalize}
    sums, signature = sums_over(task.batches(), contributed, model, task, arguments, folder=folder, progress=progress)
    return scores(locate(model).heads, measured(sums["squares"], sums), signature, normalize=normalize)


SCORE = fisher
