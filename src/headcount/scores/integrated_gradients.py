"""integrated-gradients: the contribution of a head to the effect of its layer (Hao et al. 2021, over the mask).

Hao et al. scale the attention of a layer from 0 to 1 and integrate its gradient; scaled attention is a scaled mask. So
I_h = E -integral over a from 0 to 1 of dL/dxi_h at xi = a for the heads of h's layer and 1 for all others, where L is
the negative log-likelihood of an example. Unlike the gradient at xi = 1 it is complete: over the heads of a layer it
sums to the loss without the layer minus the loss. (The paper then takes the largest entry of a head's attention.)
Shapes: B batch, H heads of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from headcount.errors import UsageError
from headcount.progress import Finer, Progress, silent
from headcount.scores.gradient import signed_gradients
from headcount.scores.one_pass import loss_task, mean_over_examples
from headcount.scores.score import Scores
from headcount.sites.locate import locate
from headcount.sites.running import Draws
from headcount.tasks.batch import Batch
from headcount.tasks.task import Task


def integrated_gradients(
    model: nn.Module,
    task: Task | None,
    *,
    steps: int = 20,
    normalize: bool = False,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Scores:
    """Mean over examples of each head's integrated gradient; `steps` backward passes per layer and batch.

    steps: number of points of the integral (midpoint rule); the paper uses 20.
    folder: for unfinished work, from which the same call resumes.
    """
    task = loss_task("integrated-gradients", task)
    if steps < 1:
        raise UsageError(f"steps must be at least 1; got {steps}.")

    finer = Finer(progress, len(locate(model)))
    arguments: dict[str, Any] = {"score": "integrated-gradients", "steps": steps, "normalize": normalize}
    return mean_over_examples(
        lambda batch: integrated(model, task, batch, steps, finer.part),
        model, task, arguments, folder=folder, progress=finer.step,
    )  # fmt: skip


def integrated(
    model: nn.Module, task: Task, batch: Batch, steps: int, report: Callable[[int], None] = lambda _: None
) -> np.ndarray:
    """[B, H]: decrease of each example's loss along the path from 0 to 1 of each head's layer.

    report: called with the number of finished layers.
    """
    sites, draws = locate(model), Draws(model)
    layers: list[np.ndarray] = []
    for number, (site, columns) in enumerate(sites.columns(), start=1):
        slopes: list[np.ndarray] = []
        for step in range(steps if site.num_heads else 0):
            mask_H = torch.ones(len(sites.heads))
            mask_H[columns] = (step + 0.5) / steps
            draws.again()
            slopes.append(signed_gradients(model, task, batch, mask_H)[:, columns])
        if slopes:
            layers.append(-np.mean(slopes, axis=0))
        report(number)
    return np.concatenate(layers, axis=1)


SCORE = integrated_gradients
