"""gradient: absolute gradient of the loss with respect to each head's mask (Michel et al. 2019, equation 2).

I_h = E |dL/dxi_h| at xi = 1, where L is the negative log-likelihood of an example; dropout is off. One pass over the
data.
Shapes: B batch, T tokens, H heads of the model, D head size.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UnknownName, UsageError
from headcount.probes.masks import masked
from headcount.probes.padding import real_tokens
from headcount.probes.taps import tapped
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.scores.pieces import shelf, summed
from headcount.scores.score import Scores, scores
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.tasks.task import Batch, Task

# Where the absolute value is taken: per example (the paper), per query position (its released code), per batch.
Granularity = Literal["example", "token", "batch"]
# Variants of other code. The script of Hugging Face never zeroed the gradient between batches: a bug, not reproduced.
PRESETS: dict[str, tuple[Granularity, bool]] = {
    "michel2019-paper": ("example", True),
    "michel2019-code": ("token", True),
    "hf-bertology": ("batch", True),
}


def gradient(
    model: nn.Module,
    task: Task | None,
    *,
    granularity: Granularity = "example",
    normalize: bool = True,
    preset: str | None = None,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Scores:
    """Mean absolute gradient of the loss with respect to each head's mask.

    normalize: divide by the L2 norm over each layer, as in the paper. It makes layers comparable, and hides a layer
        whose heads are all useless.
    preset: the exact variant of other code, instead of the two above: michel2019-paper, michel2019-code or
        hf-bertology.
    folder: for unfinished work, from which the same call resumes.
    """
    if task is None:
        raise UsageError("The gradient score needs a task: the data whose loss the heads are to serve.")
    check_gradient(task)
    if preset is not None:
        if preset not in PRESETS:
            raise UnknownName("preset of the gradient score", preset, PRESETS)
        granularity, normalize = PRESETS[preset]
    if granularity not in get_args(Granularity):
        raise UnknownName("granularity", granularity, get_args(Granularity))
    heads = locate(model).heads
    measure: Callable[..., tuple[np.ndarray, Any]] = {
        "example": example_gradients,
        "batch": batch_gradients,
        "token": token_gradients,
    }[granularity]

    def contributed(batch: Batch) -> dict[str, np.ndarray]:
        values_NH, weight_H = measure(model, task, batch)
        count_H = np.broadcast_to(np.asarray(weight_H, dtype=np.float64), len(heads))
        return {"total": values_NH.sum(0), "squares": np.square(values_NH).sum(0), "count": count_H}

    arguments = {"score": "gradient", "granularity": granularity, "normalize": normalize}
    signature = Signature(weights=weight_hash(model), data=task.fingerprint, arguments=arguments)
    finished = shelf(folder, task, {"weights": signature.weights, "data": signature.data, **arguments})
    with evaluating(model, gradients=True):
        sums = summed(task.batches(), contributed, finished=finished, progress=progress)
    if finished:
        finished.clear()
    mean_H = sums["total"] / sums["count"]
    error_H = standard_error(mean_H, sums["squares"], sums["count"]) if granularity == "example" else None
    return scores(heads, mean_H, signature, error=error_H, normalize=normalize)


def check_gradient(task: Task) -> None:
    """Raise if every gradient is zero by definition."""
    if task.stationary:
        raise UsageError(
            f"The gradient score is not defined for the task {task.name}: at the whole model the distance is at its "
            "minimum and every derivative is zero. Use the ablation score."
        )


def example_gradients(model: nn.Module, task: Task, batch: Batch) -> tuple[np.ndarray, float]:
    """[B, H] absolute gradients of each example, by one backward pass; their number."""
    gradient_BH = signed_gradients(model, task, batch)
    return np.abs(gradient_BH), float(len(gradient_BH))


def signed_gradients(model: nn.Module, task: Task, batch: Batch) -> np.ndarray:
    """[B, H] gradients of each example's loss with respect to the heads' masks, by one backward pass."""
    rows = next(len(value) for value in batch.values() if isinstance(value, Tensor))
    mask_BH = torch.ones(rows, len(locate(model).heads), requires_grad=True)
    with masked(model, mask_BH):
        nll_B = task.nll(model, batch)
    (gradient_BH,) = torch.autograd.grad(nll_B.sum(), mask_BH)
    return gradient_BH.double().numpy()


def batch_gradients(model: nn.Module, task: Task, batch: Batch) -> tuple[np.ndarray, float]:
    """[1, H] absolute gradient of the batch's summed loss; the number of its examples."""
    mask_H = torch.ones(len(locate(model).heads), requires_grad=True)
    with masked(model, mask_H):
        nll_B = task.nll(model, batch)
    (gradient_H,) = torch.autograd.grad(nll_B.sum(), mask_H)
    return gradient_H.abs().double().numpy()[None], float(len(nll_B))


def token_gradients(model: nn.Module, task: Task, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """[1, H] sum over query positions of |head output . its gradient|, padding left out; [H] number of positions."""
    sites = [site for site in locate(model) if site.num_heads]
    mask_H = torch.ones(sum(site.num_heads for site in sites), requires_grad=True)  # puts outputs into the graph
    with masked(model, mask_H), tapped(model, "outputs") as taps:
        nll_B = task.nll(model, batch)
    runs = [(site, context_BTHD) for site in sites for context_BTHD in taps.calls(site.key)]
    slopes = torch.autograd.grad(nll_B.sum(), [context_BTHD for _, context_BTHD in runs])
    moved = {site.key: np.zeros(site.num_heads) for site in sites}
    tokens = {site.key: np.zeros(site.num_heads) for site in sites}
    for (site, context_BTHD), slope_BTHD in zip(runs, slopes, strict=True):
        real_BT = real_tokens(model, site, context_BTHD, batch)
        product_BTH = (context_BTHD.double() * slope_BTHD.double()).sum(-1).abs() * real_BT[..., None]
        moved[site.key] += product_BTH.detach().flatten(0, -2).sum(0).cpu().numpy()
        tokens[site.key] += float(real_BT.sum())
    return np.concatenate(list(moved.values()))[None], np.concatenate(list(tokens.values()))


def standard_error(mean_H: np.ndarray, squares_H: np.ndarray, count_H: np.ndarray) -> np.ndarray:
    """Standard errors of means over this many examples, from their sums of squares."""
    variance_H = np.maximum(squares_H / count_H - np.square(mean_H), 0)
    return np.sqrt(variance_H / np.maximum(count_H - 1, 1))


SCORE = gradient
