"""shapley: a head's mean marginal effect over random orders of removal (Held and Yang 2023).

phi_h is the mean, over random orders, of the increase of the loss when h is removed after the heads before it in the
order. Redundant heads share their value, whereas ablation gives 0 to both. Each order is sampled with a batch of the
data, so the interval covers both. An order is truncated (Ghorbani and Zou 2019) once the model is within `tolerance`
of one without any heads; the remaining heads then get 0.
Shapes: B batch, H heads of the model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.probes.masks import masked
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.scores.gradient import standard_error
from headcount.scores.pieces import shelf, summed
from headcount.scores.score import Scores, scores
from headcount.scores.variants import rows_of
from headcount.sites.fingerprint import model_seed, weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.tasks.task import Batch, Task


def shapley(
    model: nn.Module,
    task: Task | None,
    *,
    permutations: int = 100,
    tolerance: float = 0.01,
    normalize: bool = False,
    seed: int = 0,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Scores:
    """Shapley value of each head for the mean loss of an example, with a 95% interval over random orders.

    permutations: number of random orders; each takes up to one run over a batch per head.
    tolerance: share of the effect of all heads within which an order is truncated; 0 truncates none.
    folder: for unfinished work, from which the same call resumes.
    """
    if task is None:
        raise UsageError("The shapley score needs a task: the data whose loss the heads are to serve.")
    if permutations < 2 or not 0 <= tolerance < 1:
        raise UsageError(
            f"permutations must be at least 2 and tolerance from 0 to 1; got {permutations} and {tolerance}."
        )
    heads, batches = locate(model).heads, list(task.batches())
    if not batches:
        raise UsageError("The task has no batches: there is nothing to measure on.")
    rows = np.array([rows_of(batch) for batch in batches], dtype=np.float64)
    weights = weight_hash(model)
    seed_of_model = model_seed(weights, seed)

    def contributed(number: int) -> dict[str, np.ndarray]:
        random = np.random.default_rng([seed_of_model, number])
        batch = batches[random.choice(len(batches), p=rows / rows.sum())]
        rises_H = marginal(model, task, batch, random.permutation(len(heads)), tolerance)
        return {"total": rises_H, "squares": np.square(rises_H), "count": np.array(1.0)}

    arguments: dict[str, Any] = {"score": "shapley", "permutations": permutations, "tolerance": tolerance}
    arguments["normalize"] = normalize
    signature = Signature(weights=weights, data=task.fingerprint, seed=seed, arguments=arguments)
    finished = shelf(folder, task, {"weights": signature.weights, "data": signature.data, "seed": seed, **arguments})
    with evaluating(model):
        sums = summed(range(permutations), contributed, finished=finished, progress=progress)
    if finished:
        finished.clear()
    mean_H = sums["total"] / sums["count"]
    error_H = standard_error(mean_H, sums["squares"], sums["count"])
    return scores(heads, mean_H, signature, error=error_H, normalize=normalize)


def marginal(model: nn.Module, task: Task, batch: Batch, order: np.ndarray, tolerance: float) -> np.ndarray:
    """[H]: increase of the mean loss of a batch as each head is removed in this order; 0 after truncation."""

    def loss(mask_H: Tensor) -> float:
        with masked(model, mask_H):
            return float(task.nll(model, batch).double().mean())

    mask_H = torch.ones(len(order))
    before, bare = loss(mask_H), loss(torch.zeros(len(order)))
    close = tolerance * abs(bare - before)
    rises_H = np.zeros(len(order))
    for head in order:
        if tolerance and abs(bare - before) <= close:
            break
        mask_H[head] = 0.0
        after = loss(mask_H)
        rises_H[head], before = after - before, after
    return rises_H


SCORE = shapley
