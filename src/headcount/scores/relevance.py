"""relevance: the share of each prediction that comes from a head (Voita et al. 2019, section 4 and appendix A).

Relevance of a prediction's top-1 logit is followed back to the heads' outputs, summed over positions and neurons,
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

from headcount.errors import ModelError, UnknownName, UsageError
from headcount.hooks import original_module
from headcount.probes.relevance.conservation import check, conserved, summary
from headcount.probes.relevance.rules.rule import Bias
from headcount.probes.relevance.trace import Relevance, traced
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.scores.pieces import shelf, summed
from headcount.scores.score import Scores, scores
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import Sites
from headcount.statistics import Interval
from headcount.tasks.task import Batch, Task

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
    """Mean relevance of each head over all predictions, with 95% intervals over examples.

    rule: how relevance is shared out: ding, ding-product, attnlrp, zplus2019, alphabeta2021.
    bias: "absorb", biases take their share (default), or "redistribute", sums are taken without them; for the rules
        ding and ding-product.
    target: translations are predicted step by step after the model's own output, or after the reference.
    chunk: padded tokens that run through the model at once; bounds the memory, changes no number.
    folder: for unfinished work; the same call resumes from it.
    """
    task_given = data = _predicting(task, target, chunk)
    plain, sites = original_module(model), locate(model)
    if target == "own":
        data = data.answered(plain)

    def contributed(batch: Batch) -> Sums:
        parts = (_measure(plain, data, part, sites, rule, bias) for part in chunks(batch, data.predicted(batch), chunk))
        return _added(parts)

    arguments = {"score": "relevance", "rule": rule, "bias": bias, "target": target}
    signature = Signature(weights=weight_hash(model), data=task_given.fingerprint, arguments=arguments)
    finished = shelf(folder, task_given, {"weights": signature.weights, "data": signature.data, **arguments})
    with evaluating(plain, gradients=True):
        sums = summed(data.batches(), contributed, finished=finished, progress=progress)
    if finished:
        finished.clear()
    if not sums["predictions"]:
        raise UsageError("The task has no predictions: there is nothing to measure on.")
    conservation = summary(sums)
    if bias != "redistribute":  # that one magnifies rounding without bound: reported, not refused
        check(conservation)
    mean_H, error_H = _mean_and_error(sums)
    counts = {"examples": int(sums["examples"]), "predictions": int(sums["predictions"])}
    details = {**counts, **conservation, "leads": _leads(sums, mean_H, sites)}
    return scores(sites.heads, mean_H, signature, error=error_H, normalize=False, details=details)


def _predicting(task: Task | None, target: str, chunk: int) -> Task:
    if task is None:
        raise UsageError("The relevance score needs a task: the data whose predictions are followed back to the heads.")
    if not task.predicts:
        raise UsageError(
            f"The task {task.name!r} defines no predictions for relevance to start from. Use "
            "translation, classification or language-modelling, or a task of your own with `logits` and `predicted`."
        )
    if target not in get_args(Target):
        raise UnknownName("target", target, get_args(Target))
    if chunk < 1:
        raise UsageError(f"chunk (tokens per pass) must be at least 1; got {chunk}.")
    return task


def _measure(model: nn.Module, task: Task, batch: Batch, sites: Sites, rule: str, bias: Bias | None) -> Sums:
    """What a batch adds to the sums, by one run and one backward pass for each position that predicts."""
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
    return {**moments, "products": _products(shares_BH.numpy(), sites), **_added(cuts)}


def _normalised(relevances: Relevance, sites: Sites) -> Tensor:
    """[B, H]: each head's relevance over the sum of absolute values of its layer; zeros stay zero."""
    columns = []
    for site in (site for site in sites if site.num_heads):
        heads_BH = relevances.heads[site.key].double()
        size_B1 = heads_BH.abs().sum(-1, keepdim=True)
        columns.append(heads_BH / torch.where(size_B1 == 0, 1, size_B1))
    return torch.cat(columns, -1)


def chunks(batch: Batch, predicted_BT: Tensor, chunk: int) -> Iterator[Batch]:
    """A batch in parts of at most `chunk` padded tokens; examples with as many predictions stand together."""
    rows = len(predicted_BT)
    order_B = predicted_BT.sum(-1).argsort(descending=True, stable=True)
    tensors = {name: value for name, value in batch.items() if isinstance(value, Tensor) and len(value) == rows}
    longest = max((value.shape[1] for value in tensors.values() if value.dim() > 1), default=1)
    for chosen_B in order_B.split(max(1, chunk // longest)):
        yield _trimmed({**batch, **{name: value[chosen_B] for name, value in tensors.items()}})


def _trimmed(batch: Mapping[str, object]) -> Batch:
    """The batch without columns at its end that are padding in every row."""
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
    """Sums over examples of s, s^2, s c and c^2, for s an example's sum of shares and c its number of predictions."""
    return {
        "shares": shares_BH.sum(0),
        "squares": np.square(shares_BH).sum(0),
        "mixed": (shares_BH * counts_B[:, None]).sum(0),
        "counts": np.square(counts_B).sum(),
        "predictions": counts_B.sum(),
        "examples": np.array(len(counts_B)),
    }


def _columns(sites: Sites) -> list[slice]:
    """Where the heads of each site stand among all heads."""
    ends = np.cumsum([site.num_heads for site in sites if site.num_heads]).tolist()
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def _products(shares_BH: np.ndarray, sites: Sites) -> np.ndarray:
    """[H, K]: sums over examples of s of a head times s of each of the K heads of its site, which differ in number."""
    columns = _columns(sites)
    products_HK = np.zeros((shares_BH.shape[1], max(heads.stop - heads.start for heads in columns)))
    for heads in columns:
        products_HK[heads, : heads.stop - heads.start] = shares_BH[:, heads].T @ shares_BH[:, heads]
    return products_HK


def _leads(sums: Mapping[str, np.ndarray], mean_H: np.ndarray, sites: Sites) -> dict[str, Interval]:
    """Head -> its mean less that of the highest other head of its site, on the same examples, with a 95% interval."""
    leads = {}
    bessel = sums["examples"] / max(float(sums["examples"]) - 1, 1)
    for heads in _columns(sites):
        for head in range(heads.start, heads.stop):
            others = [other for other in range(heads.start, heads.stop) if other != head]
            if not others:
                continue
            rival = max(others, key=lambda other: mean_H[other])
            value = mean_H[head] - mean_H[rival]
            squares = sums["squares"][head] + sums["squares"][rival] - 2 * sums["products"][head, rival - heads.start]
            mixed = sums["mixed"][head] - sums["mixed"][rival]
            spread = max(float(squares - 2 * value * mixed + value**2 * sums["counts"]), 0.0)
            half = 1.96 * np.sqrt(bessel * spread) / sums["predictions"]
            leads[str(sites.heads[head])] = Interval(float(value), float(value - half), float(value + half))
    return leads


def _added(parts: Iterator[Sums] | list[Sums]) -> Sums:
    total: Sums = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def _mean_and_error(sums: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """[H] mean over predictions, and its standard error over examples: sqrt(n / (n - 1) sum (s - mean c)^2) / sum c."""
    mean_H = sums["shares"] / sums["predictions"]
    squares_H = sums["squares"] - 2 * mean_H * sums["mixed"] + np.square(mean_H) * sums["counts"]
    bessel = sums["examples"] / max(float(sums["examples"]) - 1, 1)
    return mean_H, np.sqrt(bessel * np.maximum(squares_H, 0)) / sums["predictions"]


SCORE = relevance
