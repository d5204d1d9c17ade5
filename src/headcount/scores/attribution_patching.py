"""attribution-patching: what replacing a head's output would cost, to first order (Nanda 2023; Kramar et al. 2024).

AtP_h = E sum over positions of (replacement - output) . dL/d output, L an example's own negative log-likelihood: all
heads at once, by one backward pass, an estimate of what `ablation` measures head by head. A first-order estimate fails
where a softmax is saturated: where the model is so sure that small changes do not matter, it says 0 though a large
change, the head off, matters much. `study agreement` shows how far that goes on a model.
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
from headcount.record import Signature
from headcount.scores.gradient import check_gradient, standard_error
from headcount.scores.pieces import shelf, summed
from headcount.scores.score import Scores, scores
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
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
    """Mean over examples of the estimated loss that comes with replacing each head's output.

    replace: by zero, as ablation does, or by the head's mean output over the data, which takes another pass.
    folder: for unfinished work; the same call goes on with it.
    """
    if task is None:
        raise UsageError("The attribution-patching score needs a task: the data whose loss the heads are to serve.")
    check_gradient(task)
    if replace not in get_args(Replacement):
        raise UnknownName("replacement", replace, get_args(Replacement))
    means = mean_outputs(model, task.batches(), run=task.nll) if replace == "mean" else None

    def contributed(batch: Batch) -> dict[str, np.ndarray]:
        values_BH = patched(model, task, batch, means)
        count = np.array(float(len(values_BH)))
        return {"total": values_BH.sum(0), "squares": np.square(values_BH).sum(0), "count": count}

    arguments: dict[str, Any] = {"score": "attribution-patching", "replace": replace, "normalize": normalize}
    signature = Signature(weights=weight_hash(model), data=task.fingerprint, arguments=arguments)
    finished = shelf(folder, task, {"weights": signature.weights, "data": signature.data, **arguments})
    with evaluating(model, gradients=True):
        sums = summed(task.batches(), contributed, finished=finished, progress=progress)
    if finished:
        finished.clear()
    mean_H = sums["total"] / sums["count"]
    error_H = standard_error(mean_H, sums["squares"], sums["count"])
    return scores(locate(model).heads, mean_H, signature, error=error_H, normalize=normalize)


def patched(model: nn.Module, task: Task, batch: Batch, means: Means | None) -> np.ndarray:
    """[B, H]: to first order, how much each example's loss rises when a head's output is replaced."""
    sites = [site for site in locate(model) if site.num_heads]
    mask_H = torch.ones(sum(site.num_heads for site in sites), requires_grad=True)  # makes outputs part of the graph
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
