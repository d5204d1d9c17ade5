"""attribution-patching: first-order estimate of replacing a head's output (Nanda 2023; Kramar et al. 2024).

AtP_h = E sum over positions of (replacement - output) . dL/d output, where L is the negative log-likelihood of an
example. One backward pass gives an estimate for all heads of what `ablation` measures head by head. The estimate fails
if a softmax is saturated: small changes then do not matter and it is 0, although masking the head matters.
`study agreement` measures how accurate it is on a model.
Shapes: B batch, T tokens, H heads of the model (or of one site), D head size.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UnknownName, UsageError
from headcount.probes.masks import Means, masked
from headcount.probes.means import mean_outputs
from headcount.probes.taps import tapped
from headcount.progress import Progress, silent
from headcount.scores.example_mean import mean_over_examples
from headcount.scores.gradient import check_gradient
from headcount.scores.score import Scores
from headcount.sites.locate import locate
from headcount.tasks.task import Batch, Task

Replacement = Literal["zero", "mean"]


def attribution_patching(
    model: nn.Module,
    task: Task | None,
    *,
    replace: Replacement = "zero",
    normalize: bool = False,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Scores:
    """Mean over examples of the estimated increase of the loss when each head's output is replaced.

    replace: "zero", as ablation does, or "mean", the head's mean output over the data, which takes another pass.
    folder: for unfinished work; the same call resumes from it.
    """
    if task is None:
        raise UsageError("The attribution-patching score needs a task: the data whose loss the heads are to serve.")
    check_gradient(task)
    if replace not in get_args(Replacement):
        raise UnknownName("replacement", replace, get_args(Replacement))
    means = mean_outputs(model, task.batches(), run=task.nll) if replace == "mean" else None

    arguments: dict[str, Any] = {"score": "attribution-patching", "replace": replace, "normalize": normalize}
    return mean_over_examples(
        model, task, lambda batch: patched(model, task, batch, means), arguments, folder=folder, progress=progress
    )


def patched(model: nn.Module, task: Task, batch: Batch, means: Means | None) -> np.ndarray:
    """[B, H]: to first order, how much each example's loss rises when a head's output is replaced."""
    sites = [site for site in locate(model) if site.num_heads]
    mask_H = torch.ones(sum(site.num_heads for site in sites), requires_grad=True)  # puts outputs into the graph
    with masked(model, mask_H), tapped(model, "outputs") as taps:
        nll_B = task.nll(model, batch)
    runs = [(site, output_BTHD) for site in sites for output_BTHD in taps.calls(site.key)]
    slopes = torch.autograd.grad(nll_B.sum(), [output_BTHD for _, output_BTHD in runs])
    rises = {site.key: np.zeros((len(nll_B), site.num_heads)) for site in sites}
    for (site, output_BTHD), slope_BTHD in zip(runs, slopes, strict=True):
        change_BTHD: Tensor = -output_BTHD.detach().double()
        if means is not None:
            change_BTHD = change_BTHD + means[site.key].to(change_BTHD)
        rise_BTH = (change_BTHD * slope_BTHD.double()).sum(-1)
        rises[site.key] += rise_BTH.flatten(1, -2).sum(1).cpu().numpy()
    return np.concatenate(list(rises.values()), axis=1)


SCORE = attribution_patching
