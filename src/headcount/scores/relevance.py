"""Layer-wise relevance of heads: the share of each prediction due to a head (Voita et al. 2019, section 4, appendix A).

The relevance of the top-1 logit is propagated back to the outputs of the heads, summed over positions and neurons,
divided by the sum of absolute values over the heads of the layer, and averaged over all predictions.
Shapes: B batch, T positions that predict, C classes or vocabulary, H heads of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UsageError, check_name
from headcount.hooks import original_module
from headcount.probes.relevance.conservation import check, conserved, summary
from headcount.probes.relevance.rules.rule import Bias
from headcount.probes.relevance.trace import Relevance, traced
from headcount.progress import Progress, silent
from headcount.scores.one_pass import measured, site_products, sums_over
from headcount.scores.score import Scores, scores
from headcount.sites.locate import locate
from headcount.sites.site import Sites
from headcount.statistics import Interval, half_width
from headcount.tasks.batch import Batch
from headcount.tasks.task import Task

Target = Literal["own", "reference"]
Sums = dict[str, np.ndarray]


def relevance(
    model: nn.Module,
    task: Task | None,
    *,
    rule: str = "ding",
    bias: Bias | None = None,
    target: Target = "own",
    chunk: int = 1024,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Scores:
    """Compute the mean relevance of each head over all predictions, with 95% intervals over examples.

    Args:
        model: The model to score.
        task: Task whose predictions are explained.
        rule: Propagation rule: "ding", "ding-product", "attnlrp", "zplus2019" or "alphabeta2021".
        bias: For the rules ding and ding-product: "absorb" (default) assigns a share of the relevance to biases;
            "redistribute" excludes them from the sums.
        target: Prefix of each predicted target token: "own" for the output of the model, "reference" for the reference.
        chunk: Maximum number of padded tokens per forward pass. Limits memory and does not change the results.
        folder: Folder for unfinished work, from which the same call resumes.
        progress: Reports progress.
    """
    task_given = data = _predicting(task, target, chunk)
    plain, sites = original_module(model), locate(model)
    if target == "own":
        data = data.answered(plain)

    def contributed(batch: Batch) -> Sums:
        parts = (_measure(plain, data, part, sites, rule, bias) for part in chunks(batch, data.predicted(batch), chunk))
        return _added(parts)

    arguments = {"score": "relevance", "rule": rule, "bias": bias, "target": target}
    sums, signature = sums_over(
        data.batches(), contributed, model, task_given, arguments, folder=folder, progress=progress
    )
    if not sums["predictions"]:
        raise UsageError("The task has no predictions: there is nothing to measure on.")
    conservation = summary(sums)
    if bias != "redistribute":  # "redistribute" can amplify rounding without bound: only report it
        check(conservation)
    mean_H, error_H, cubes_H = (measured(values_H, sums) for values_H in _mean_and_spread(sums))
    counts = {"examples": int(sums["examples"]), "predictions": int(sums["predictions"])}
    details = {**counts, **conservation, "leads": _leads(sums, mean_H, sites)}
    count = float(sums["examples"])
    return scores(
        sites.heads, mean_H, signature, error=error_H, cubes=cubes_H, count=count, normalize=False, details=details
    )


def _predicting(task: Task | None, target: str, chunk: int) -> Task:
    if task is None:
        raise UsageError("The relevance score needs a task: the data whose predictions are followed back to the heads.")
    if not task.predicts:
        raise UsageError(
            f"The task {task.name!r} defines no predictions for relevance to start from. Use "
            "translation, classification or language-modelling, or a task of your own with `logits` and `predicted`."
        )
    check_name("target", target, get_args(Target))
    if chunk < 1:
        raise UsageError(f"chunk (tokens per pass) must be at least 1; got {chunk}.")
    return task


def _measure(model: nn.Module, task: Task, batch: Batch, sites: Sites, rule: str, bias: Bias | None) -> Sums:
    """Return the sums over a batch, with one forward pass and one backward pass per predicting position."""
    predicted_BT = task.predicted(batch)
    with traced(model, rule=rule, bias=bias) as trace:
        logits_BTC = task.logits(model, batch)
    top_BT, device = logits_BTC.detach().argmax(-1), logits_BTC.device
    shares_BH = torch.zeros(len(predicted_BT), len(sites.heads), dtype=torch.float64, device=device)
    cuts: list[Sums] = []
    for position in predicted_BT.any(0).nonzero()[:, 0].tolist():
        counted_B = predicted_BT[:, position].to(device)
        logits_B = trace.predictions(logits_BTC, position, top_BT[:, position])
        relevances = trace.relevance(logits_B, counted_B)
        shares_BH += _normalised(relevances, sites)
        cuts.append(conserved(trace, torch.where(counted_B, logits_B.detach(), 0), relevances))
    if not (shares_BH.isfinite().all() and logits_BTC.detach()[predicted_BT.to(device)].isfinite().all()):
        raise ModelError(
            f"Relevance is not finite on {type(model).__name__}: its outputs overflow. Load it with dtype='float32'."
        )
    shares_BH = shares_BH.cpu()
    moments = _moments(shares_BH.numpy(), predicted_BT.sum(-1).numpy())
    return {**moments, "products": site_products(shares_BH.numpy(), sites), **_added(cuts)}


def _normalised(relevances: Relevance, sites: Sites) -> Tensor:
    """Return [B, H]: relevance of each head divided by the sum of absolute values of its layer.

    Zeros stay zero; a site that did not run has zeros.
    """
    columns, none_B1 = [], torch.zeros_like(relevances.cuts[0])[:, None]
    for site in (site for site in sites if site.num_heads):
        heads_BH = relevances.heads.get(site.key, none_B1.expand(-1, site.num_heads)).double()
        size_B1 = heads_BH.abs().sum(-1, keepdim=True)
        columns.append(heads_BH / torch.where(size_B1 == 0, 1, size_B1))
    return torch.cat(columns, -1)


def chunks(batch: Batch, predicted_BT: Tensor, chunk: int) -> Iterator[Batch]:
    """Split a batch into parts of at most `chunk` padded tokens, sorted by the number of predictions."""
    rows = len(predicted_BT)
    order_B = predicted_BT.sum(-1).argsort(descending=True, stable=True)
    tensors = {name: value for name, value in batch.items() if isinstance(value, Tensor) and len(value) == rows}
    longest = max((value.shape[1] for value in tensors.values() if value.dim() > 1), default=1)
    for chosen_B in order_B.split(max(1, chunk // longest)):
        yield _trimmed({**batch, **{name: value[chosen_B] for name, value in tensors.items()}})


def _trimmed(batch: Mapping[str, object]) -> Batch:
    """Remove trailing columns that are padding in every row."""
    widths: dict[int, int] = {}
    for name, padding in (("attention_mask", 0), ("labels", -100)):
        value = batch.get(name)
        if isinstance(value, Tensor) and value.dim() == 2:
            real = (value != padding).any(0).nonzero()
            width = int(real[-1]) + 1 if len(real) else 1
            widths[value.shape[1]] = max(width, widths.get(value.shape[1], 0))
    tables = {name: value for name, value in batch.items() if isinstance(value, Tensor) and value.dim() == 2}
    return {**batch, **{name: value[:, : widths.get(value.shape[1])] for name, value in tables.items()}}


def _moments(shares_BH: np.ndarray, counts_B: np.ndarray) -> Sums:
    """Sum s, s^2, s c, c^2, s^3, s^2 c, s c^2 and c^3 over examples.

    s is the sum of shares of an example, c its number of predictions.
    """
    counts_B1 = counts_B[:, None].astype(np.float64)
    return {
        "shares": shares_BH.sum(0),
        "squares": np.square(shares_BH).sum(0),
        "mixed": (shares_BH * counts_B[:, None]).sum(0),
        "counts": np.square(counts_B).sum(),
        "third": np.stack([(shares_BH ** (3 - power) * counts_B1**power).sum(0) for power in range(4)]),
        "predictions": counts_B.sum(),
        "examples": np.array(len(counts_B)),
    }


def _leads(sums: Mapping[str, np.ndarray], mean_H: np.ndarray, sites: Sites) -> dict[str, Interval]:
    """Return for each head its mean minus the highest mean of the other heads of its site, with a 95% interval.

    The differences are paired: both heads are measured on the same examples.
    """
    leads = {}
    bessel = sums["examples"] / max(float(sums["examples"]) - 1, 1)
    for _, heads in sites.columns():
        for head in range(heads.start, heads.stop):
            other_heads = [other for other in range(heads.start, heads.stop) if other != head]
            if not other_heads:
                continue
            rival = max(other_heads, key=lambda other: mean_H[other])
            value = mean_H[head] - mean_H[rival]
            squares = sums["squares"][head] + sums["squares"][rival] - 2 * sums["products"][head, rival - heads.start]
            mixed = sums["mixed"][head] - sums["mixed"][rival]
            spread = max(float(squares - 2 * value * mixed + value**2 * sums["counts"]), 0.0)
            half = half_width(np.sqrt(bessel * spread) / sums["predictions"], float(sums["examples"]))
            leads[str(sites.heads[head])] = Interval(float(value), float(value - half), float(value + half))
    return leads


def _added(parts: Iterator[Sums] | list[Sums]) -> Sums:
    total: Sums = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def _mean_and_spread(sums: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return [H] the mean over predictions, its standard error over examples and its third central moment.

    With d = s - mean c, the standard error is sqrt(n / (n - 1) sum d^2) / sum c. The third moment is that of the sum of
    d, and of its division by a number of predictions that varies: (sum d^3 - 6 sum c d sum d^2 / sum c) / (sum c)^3.
    """
    mean_H, predictions = sums["shares"] / sums["predictions"], sums["predictions"]
    squares_H = np.maximum(sums["squares"] - 2 * mean_H * sums["mixed"] + np.square(mean_H) * sums["counts"], 0)
    bessel = sums["examples"] / max(float(sums["examples"]) - 1, 1)
    cubes_H = np.sum([[1], [-3], [3], [-1]] * mean_H ** np.arange(4)[:, None] * sums["third"], axis=0)
    cubes_H -= 6 * (sums["mixed"] - mean_H * sums["counts"]) * squares_H / predictions
    return mean_H, np.sqrt(bessel * squares_H) / predictions, cubes_H / predictions**3


SCORE = relevance
