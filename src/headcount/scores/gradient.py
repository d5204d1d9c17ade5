"""gradient: absolute gradient of the loss with respect to each head's mask (Michel et al. 2019, equation 2).

I_h = E |dL/dxi_h| at xi = 1, where L is the negative log-likelihood of an example; dropout is off. One pass over the
data.
Shapes: B batch, T tokens, H heads of the model, D head size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import MaskError, UsageError, check_name
from headcount.probes.inputs import inputs_of
from headcount.probes.masks import masked
from headcount.probes.padding import real_tokens
from headcount.probes.taps import tapped
from headcount.progress import Progress, silent
from headcount.scores.one_pass import loss_task, mean_scores, moments, sums_over
from headcount.scores.pieces import Arrays
from headcount.scores.score import Scores
from headcount.sites.locate import locate
from headcount.sites.site import Site, SiteKey
from headcount.tasks.batch import Batch, rows_of
from headcount.tasks.task import Task

# Where the absolute value is taken: per example (the paper), per query position (its released code), per batch.
Granularity = Literal["example", "token", "batch"]
Measure = Callable[[nn.Module, Task, Batch], tuple[np.ndarray, float | np.ndarray]]
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
    task = loss_task("gradient", task)
    if preset is not None:
        check_name("preset of the gradient score", preset, PRESETS)
        granularity, normalize = PRESETS[preset]
    check_name("granularity", granularity, get_args(Granularity))
    measures: dict[str, Measure] = {"example": example_gradients, "batch": batch_gradients, "token": token_gradients}

    def contributed(batch: Batch) -> Arrays:
        return moments(*measures[granularity](model, task, batch), locate(model))

    arguments = {"score": "gradient", "granularity": granularity, "normalize": normalize}
    sums, signature = sums_over(task.batches(), contributed, model, task, arguments, folder=folder, progress=progress)
    by_example = granularity == "example"
    return mean_scores(model, sums, signature, normalize=normalize, interval=by_example, least=0.0)


def example_gradients(model: nn.Module, task: Task, batch: Batch) -> tuple[np.ndarray, float]:
    """[B, H] absolute gradients of each example, by one backward pass; their number."""
    gradient_BH = signed_gradients(model, task, batch)
    return np.abs(gradient_BH), float(len(gradient_BH))


def signed_gradients(model: nn.Module, task: Task, batch: Batch, at_H: Tensor | None = None) -> np.ndarray:
    """[N, H] gradients of each loss with respect to the heads' masks, at a mask (by default 1).

    By one backward pass, or by one for each loss if it depends on other examples or on several rows of the model.
    """
    at_H = torch.ones(len(locate(model).heads)) if at_H is None else at_H
    if not task.separate(model):
        return _gradients_by_example(model, task, batch, at_H)
    mask_BH = at_H.repeat(rows_of(batch), 1).requires_grad_()
    try:
        with masked(model, mask_BH):
            nll_B = task.nll(model, batch)
    except MaskError:  # the model has other rows than the batch, as for multiple choice
        return _gradients_by_example(model, task, batch, at_H)
    if len(nll_B) != len(mask_BH):  # a loss of several rows, as of a pair of answers
        return _gradients_by_example(model, task, batch, at_H)
    (gradient_BH,) = slopes_of(nll_B, [mask_BH])
    return gradient_BH.double().numpy()


def _gradients_by_example(model: nn.Module, task: Task, batch: Batch, at_H: Tensor) -> np.ndarray:
    mask_H = at_H.clone().requires_grad_()
    with masked(model, mask_H):
        nll_B = task.nll(model, batch)
    slopes = [slopes_of(nll, [mask_H], retain=True)[0] for nll in nll_B]
    return torch.stack(slopes).double().numpy()


def batch_gradients(model: nn.Module, task: Task, batch: Batch) -> tuple[np.ndarray, float]:
    """[1, H] absolute gradient of the batch's summed loss; the number of its examples."""
    mask_H = torch.ones(len(locate(model).heads), requires_grad=True)
    with masked(model, mask_H):
        nll_B = task.nll(model, batch)
    (gradient_H,) = slopes_of(nll_B, [mask_H])
    return gradient_H.abs().double().numpy()[None], float(len(nll_B))


def token_gradients(model: nn.Module, task: Task, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """[1, H] sum over query positions of |head output . its gradient|, padding left out; [H] number of positions."""
    sites = [site for site in locate(model) if site.num_heads]
    moved = {site.key: np.zeros(site.num_heads) for site in sites}
    tokens = {site.key: np.zeros(site.num_heads) for site in sites}
    nll_B, runs = head_outputs(model, task, batch)
    slopes = slopes_of(nll_B, [run.context_BTHD for run in runs])
    for run, slope_BTHD in zip(runs, slopes, strict=True):
        real_BT = real_tokens(model, run.site, run.context_BTHD, run.inputs)
        product_BTH = (run.context_BTHD.double() * slope_BTHD.double()).sum(-1).abs() * real_BT[..., None]
        moved[run.site.key] += product_BTH.detach().flatten(0, -2).sum(0).cpu().numpy()
        tokens[run.site.key] += float(real_BT.sum())
    return np.concatenate(list(moved.values()))[None], np.concatenate(list(tokens.values()))


@dataclass(frozen=True)
class SiteRun:
    """One run of a site: the outputs of its heads, and what the model was given."""

    site: Site
    context_BTHD: Tensor
    inputs: Mapping[str, Any]


def head_outputs(model: nn.Module, task: Task, batch: Batch) -> tuple[Tensor, list[SiteRun]]:
    """Each example's loss; the runs of each site, whose outputs the loss comes from."""
    sites = [site for site in locate(model) if site.num_heads]
    mask_H = torch.ones(sum(site.num_heads for site in sites), requires_grad=True)  # puts outputs into the graph
    runs: dict[SiteKey, list[SiteRun]] = {site.key: [] for site in sites}

    def add(site: Site, context_BTHD: Tensor) -> None:
        runs[site.key].append(SiteRun(site, context_BTHD, inputs.now))

    with inputs_of(model) as inputs, masked(model, mask_H), tapped(model, "outputs", sink=add):
        inputs.begin(batch)
        nll_B = task.nll(model, batch)
    return nll_B, [run for site in sites for run in runs[site.key]]


def slopes_of(nll_B: Tensor, tensors: Sequence[Tensor], *, retain: bool = False) -> list[Tensor]:
    """Gradients of the summed loss with respect to tensors; 0 for outputs that the loss does not use.

    retain: keep the graph for further gradients of the same run. Raises if the loss uses none of the tensors.
    """
    slopes: Sequence[Tensor | None] = ()
    if nll_B.requires_grad:
        slopes = torch.autograd.grad(nll_B.sum(), tensors, allow_unused=True, retain_graph=retain)
    if all(slope is None for slope in slopes):
        raise UsageError(
            "The loss has no gradient with respect to the heads. Compute it from the output of the model, without "
            "torch.no_grad, detach or item."
        )
    return [torch.zeros_like(tensor) if slope is None else slope for tensor, slope in zip(tensors, slopes, strict=True)]


SCORE = gradient
