"""shapley: a head's mean marginal effect over random orders of removal (Held and Yang 2023).

phi_h is the mean, over random orders, of the increase of the loss when h is removed after the heads before it in the
order. Redundant heads share their value, whereas ablation gives 0 to both. Each order is sampled with a batch of the
data. The interval covers orders and examples: more orders do not make up for few examples. An order is truncated
(Ghorbani and Zou 2019) once the model is within `tolerance` of one without any heads; the remaining heads then get 0.
Shapes: B batch, H heads of the model.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.probes.masks import masked
from headcount.progress import Progress, silent
from headcount.scores.one_pass import Sampled, loss_task, mean_scores, moments, site_products, sums_over
from headcount.scores.pieces import NO_BATCHES, Arrays
from headcount.scores.score import Scores
from headcount.sites.fingerprint import model_seed, weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import Draws
from headcount.sites.site import Sites
from headcount.tasks.batch import Batch
from headcount.tasks.task import Task


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
    """Shapley value of each head for the mean loss of an example, with a 95% interval over random orders and examples.

    permutations: number of random orders; each takes up to one run over a batch per head.
    tolerance: share of the effect of all heads within which an order is truncated; 0 truncates none.
    folder: for unfinished work, from which the same call resumes.
    """
    task = loss_task("shapley", task, gradients=False)
    if permutations < 2 or not 0 <= tolerance < 1:
        raise UsageError(
            f"permutations must be at least 2 and tolerance from 0 to 1; got {permutations} and {tolerance}."
        )
    sites, batches = locate(model), list(task.batches())
    if not batches:
        raise UsageError(NO_BATCHES)
    losses = np.array([task.losses(model, batch) for batch in batches], dtype=np.float64)
    seed_of_model = model_seed(weight_hash(model), seed)

    def contributed(number: int) -> Arrays:
        random = np.random.default_rng([seed_of_model, number])
        batch_index = int(random.choice(len(batches), p=losses / losses.sum()))
        rises_BH = marginal(model, task, batches[batch_index], random.permutation(len(sites.heads)), tolerance)
        mean_H = rises_BH.mean(0)
        apart = {"within": site_products(rises_BH - mean_H, sites), "degrees": np.array(len(rises_BH) - 1)}
        return {**moments(mean_H[None], 1, sites), **apart, "visits": np.eye(len(batches))[batch_index]}

    arguments = {
        "score": "shapley", "permutations": permutations, "tolerance": tolerance, "normalize": normalize
    }  # fmt: skip
    sums, signature = sums_over(
        range(permutations), contributed, model, task, arguments, folder=folder, progress=progress, seed=seed,
        gradients=False,
    )  # fmt: skip
    examples = 1 / float((np.square(sums["visits"] / permutations) / losses).sum())  # as many, if visited equally often
    return mean_scores(
        model, sums, signature, normalize=normalize, over=Sampled(_of_examples(sums, sites) / examples, examples)
    )


def _of_examples(sums: Arrays, sites: Sites) -> np.ndarray:
    """[H, K]: covariance over examples of what heads of a site add; with batches of one, that over orders has it."""
    if sums["degrees"]:
        return np.asarray(sums["within"] / sums["degrees"])
    mean_H = sums["total"] / sums["count"]
    return np.asarray(sums["products"] / sums["count"] - site_products(mean_H[None], sites))


def marginal(model: nn.Module, task: Task, batch: Batch, order: np.ndarray, tolerance: float) -> np.ndarray:
    """[B, H]: increase of each example's loss as each head is removed in this order; 0 after truncation."""

    draws = Draws(model)

    def loss(mask_H: Tensor) -> np.ndarray:
        draws.again()
        with masked(model, mask_H):
            return np.asarray(task.nll(model, batch).double().cpu().numpy())

    mask_H = torch.ones(len(order))
    before_B, bare_B = loss(mask_H), loss(torch.zeros(len(order)))
    close = tolerance * abs((bare_B - before_B).mean())
    rises_BH = np.zeros((len(before_B), len(order)))
    for head in order:
        if tolerance and abs((bare_B - before_B).mean()) <= close:
            break
        mask_H[head] = 0.0
        after_B = loss(mask_H)
        rises_BH[:, head], before_B = after_B - before_B, after_B
    return rises_BH


SCORE = shapley
