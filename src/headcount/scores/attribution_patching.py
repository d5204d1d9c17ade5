"""attribution-patching: first-order estimate of replacing a head's output (Nanda 2023; Kramar et al. 2024).

AtP_h = E sum over positions of (replacement - output) . dL/d output, where L is the negative log-likelihood of an
example. One backward pass gives an estimate for all heads of what `ablation` measures head by head. The estimate fails
if a softmax is saturated: small changes then do not matter and it is 0, although masking the head matters.
`study agreement` measures how accurate it is on a model.
Shapes: B batch, T tokens, H heads of the model (or of one site), D head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from torch import Tensor, nn

from headcount.errors import check_name
from headcount.probes.masks import Means
from headcount.probes.means import mean_outputs
from headcount.progress import Progress, silent
from headcount.scores.gradient import SiteRun, head_outputs, slopes_of
from headcount.scores.one_pass import loss_task, mean_over_examples
from headcount.scores.score import Scores
from headcount.sites.locate import locate
from headcount.tasks.batch import Batch
from headcount.tasks.task import Task

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
    task = loss_task("attribution-patching", task)
    check_name("replacement", replace, get_args(Replacement))
    means = mean_outputs(model, task.batches(), run=task.nll) if replace == "mean" else None

    arguments: dict[str, Any] = {"score": "attribution-patching", "replace": replace, "normalize": normalize}
    return mean_over_examples(
        lambda batch: patched(model, task, batch, means), model, task, arguments, folder=folder, progress=progress
    )


def patched(model: nn.Module, task: Task, batch: Batch, means: Means | None) -> np.ndarray:
    """[B, H]: to first order, how much each example's loss rises when a head's output is replaced.

    By one backward pass, or by one for each example if its loss depends on the others or on several rows of the model.
    """
    nll_B, runs = head_outputs(model, task, batch)
    outputs = [run.context_BTHD for run in runs]
    if task.separate(model) and all(len(output_BTHD) == len(nll_B) for output_BTHD in outputs):
        return _rises(model, runs, slopes_of(nll_B, outputs), means, rows=len(nll_B))
    return np.concatenate([_rises(model, runs, slopes_of(nll, outputs, retain=True), means) for nll in nll_B])


def _rises(
    model: nn.Module,
    runs: Sequence[SiteRun],
    slopes: Sequence[Tensor],
    means: Means | None,
    *,
    rows: int = 1,
) -> np.ndarray:
    """[rows, H]: (replacement - output) . slope, summed over positions and runs, and over rows of the model if one."""
    rises = {site.key: np.zeros((rows, site.num_heads)) for site in locate(model) if site.num_heads}
    for run, slope_BTHD in zip(runs, slopes, strict=True):
        site, change_BTHD = run.site, -run.context_BTHD.detach().double()
        if means is not None:
            change_BTHD = change_BTHD + means[site.key].to(change_BTHD)
        rise_BTH = (change_BTHD * slope_BTHD.double()).sum(-1)
        rises[site.key] += rise_BTH.reshape(rows, -1, site.num_heads).sum(1).cpu().numpy()
    return np.concatenate(list(rises.values()), axis=1)


SCORE = attribution_patching
