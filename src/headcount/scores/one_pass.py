"""One pass: a score measured as sums over the batches of a task; resumable and shared by processes.

Shapes: N values (of examples, or of something else that is counted), H heads of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.probes.runs import site_runs, warn_of_idle
from headcount.progress import Progress
from headcount.record import Signature
from headcount.scores.pieces import Arrays, shelf, summed
from headcount.scores.score import Scores, layer_norms, scores
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import SiteKey, Sites
from headcount.tasks.batch import Batch
from headcount.tasks.task import Task

Item = TypeVar("Item")


def loss_task(score: str, task: Task | None, *, gradients: bool = True) -> Task:
    """The task of a score of the loss. Raises if there is none, or if all its gradients are zero by definition."""
    if task is None:
        raise UsageError(f"The {score} score needs a task: the data whose loss the heads are to serve.")
    if gradients and task.stationary:
        raise UsageError(
            f"The {score} score is not defined for the task {task.name}: at the whole model the distance is at its "
            "minimum and every derivative is zero. Use the ablation score."
        )
    return task


def sums_over(
    items: Iterable[Item],
    contributed: Callable[[Item], Arrays],
    model: nn.Module,
    task: Task,
    arguments: Mapping[str, object],
    *,
    folder: Path | None,
    progress: Progress,
    seed: int | None = None,
    gradients: bool = True,
) -> tuple[dict[str, np.ndarray], Signature]:
    """The summed contributions of batches (or other items), and the signature of the score.

    The sums have the "runs" of each head's site too [H]: a head whose site did not run has no score.
    arguments: of the signature. folder: for unfinished work, from which the same call resumes.
    """
    signature = Signature(weights=weight_hash(model), data=task.fingerprint, seed=seed, arguments=dict(arguments))
    work = {"weights": signature.weights, "data": signature.data, **({} if seed is None else {"seed": seed})}
    work["sums"] = "runs"  # unfinished sums of earlier versions had fewer: no products, no cubes, no runs
    finished = shelf(folder, model, task, {**work, **arguments})
    with evaluating(model, gradients=gradients):
        sums = summed(items, with_runs(model, contributed), finished=finished, progress=progress)
    warn_of_idle(model, by_site(model, sums["runs"]))
    return sums, signature


def with_runs(model: nn.Module, contributed: Callable[[Item], Arrays]) -> Callable[[Item], Arrays]:
    """The same contributions, with "runs" [H]: how often the site of each head ran."""

    def counted(item: Item) -> Arrays:
        with site_runs(model) as runs:
            arrays = contributed(item)
        return {**arrays, "runs": np.array([runs[head.site] for head in locate(model).heads], dtype=np.float64)}

    return counted


def by_site(model: nn.Module, runs_H: np.ndarray) -> dict[SiteKey, float]:
    """Runs of the heads' sites, by site."""
    return dict(zip((head.site for head in locate(model).heads), runs_H.tolist(), strict=True))


def measured(values_H: np.ndarray, sums: Arrays) -> np.ndarray:
    """[H]: the values, NaN for heads whose site did not run."""
    return np.where(sums.get("runs", np.ones_like(values_H)) > 0, values_H, np.nan)


def moments(values_NH: np.ndarray, count: float | np.ndarray, sites: Sites) -> Arrays:
    """What `mean_scores` needs, as a contribution to sums. count: what the sum of the values is divided by."""
    products = {"products": site_products(values_NH, sites), "cubes": _site_cubes(values_NH, sites)}
    return {"total": values_NH.sum(0), **products, "count": np.asarray(count, dtype=float)}


def site_products(values_NH: np.ndarray, sites: Sites) -> np.ndarray:
    """[H, K]: sums over values of the products of a head and each head of its site.

    K is the largest number of heads of a site; unused entries are zero.
    """
    products_HK = np.zeros((values_NH.shape[1], max(site.num_heads for site in sites)))
    for _, heads in sites.columns():
        products_HK[heads, : heads.stop - heads.start] = values_NH[:, heads].T @ values_NH[:, heads]
    return products_HK


def _site_cubes(values_NH: np.ndarray, sites: Sites) -> np.ndarray:
    """[H, K, K]: the same, of the products of a head and each two heads of its site."""
    widest = max(site.num_heads for site in sites)
    cubes_HKK = np.zeros((values_NH.shape[1], widest, widest))
    for _, heads in sites.columns():
        values_NK, width = values_NH[:, heads], heads.stop - heads.start
        pairs_NP = (values_NK[:, :, None] * values_NK[:, None]).reshape(len(values_NK), width**2)
        cubes_HKK[heads, :width, :width] = (values_NK.T @ pairs_NP).reshape(width, width, width)
    return cubes_HKK


class Sampled(NamedTuple):
    """What else means vary over, besides the values that are summed."""

    covariance_HK: np.ndarray  # of the means of a head and each head of its site, see `site_products`
    units: float  # how many were sampled


def mean_scores(
    model: nn.Module,
    sums: Arrays,
    signature: Signature,
    *,
    normalize: bool,
    interval: bool = True,
    least: float = -np.inf,
    over: Sampled | None = None,
) -> Scores:
    """Means of summed values as scores, with their 95% intervals if values are of single examples.

    least: the smallest possible value, at which intervals end.
    """
    with np.errstate(invalid="ignore"):  # no tokens at sites that did not run
        sites, mean_H = locate(model), measured(sums["total"] / sums["count"], sums)
    if not interval:
        return scores(sites.heads, mean_H, signature, normalize=normalize)
    error_H, cubes_H = _spread(sums, mean_H, sites, normalize=normalize, over=over)
    count = float(sums["count"] if over is None else np.minimum(sums["count"], over.units))
    return scores(
        sites.heads, mean_H, signature, error=error_H, cubes=cubes_H, count=count, least=least, normalize=normalize
    )  # fmt: skip


def _spread(
    sums: Arrays, mean_H: np.ndarray, sites: Sites, *, normalize: bool, over: Sampled | None
) -> tuple[np.ndarray, np.ndarray]:
    """[H] each: standard errors of the means, and their third central moments.

    Of normalised means by the delta method, as the norm varies too.
    """
    count, error_H, cubes_H = float(sums["count"]), np.zeros_like(mean_H), np.zeros_like(mean_H)
    norm_H = layer_norms(sites.heads, mean_H) if normalize else np.ones_like(mean_H)
    for _, heads in sites.columns():
        mean_K, width = mean_H[heads], heads.stop - heads.start
        products_KK = sums["products"][heads, :width] / count
        covariance_KK = (products_KK - np.outer(mean_K, mean_K)) / max(count - 1, 1)
        covariance_KK += over.covariance_HK[heads, :width] if over else 0.0
        share_K = mean_K / norm_H[heads] if normalize else np.zeros_like(mean_K)
        slope_KK = np.eye(width) - np.outer(share_K, share_K)  # of the normalised means, times the norm
        variance_K = np.einsum("hk,kl,hl->h", slope_KK, covariance_KK, slope_KK)
        error_H[heads] = np.sqrt(np.maximum(variance_K, 0)) / norm_H[heads]
        cubes_H[heads] = _linear_cubes(sums["cubes"][heads, :width, :width] / count, products_KK, mean_K, slope_KK)
        cubes_H[heads] /= count**2
        if normalize:
            cubes_H[heads] += _bend(covariance_KK @ slope_KK.T, share_K, norm_H[heads])
        cubes_H[heads] /= norm_H[heads] ** 3
    return error_H, cubes_H


def _linear_cubes(
    cubes_KKK: np.ndarray, products_KK: np.ndarray, mean_K: np.ndarray, slope_KK: np.ndarray
) -> np.ndarray:
    """[K]: third central moments of the values times each row of slopes, from mean products of values."""
    middle_K = slope_KK @ mean_K
    raw_K = np.einsum("hk,kij,hi,hj->h", slope_KK, cubes_KKK, slope_KK, slope_KK, optimize=True)
    square_K = np.einsum("hk,kl,hl->h", slope_KK, products_KK, slope_KK)
    return np.asarray(raw_K - 3 * middle_K * square_K + 2 * middle_K**3)


def _bend(moved_KK: np.ndarray, share_K: np.ndarray, norm_K: np.ndarray) -> np.ndarray:
    """[K]: what the bend of m / |m| adds to the third central moments of the means: 3 v' (second derivatives) v.

    moved_KK: for each head v, the covariance of the means with the linear part, as a column.
    """
    along_K = share_K @ moved_KK
    bent_K = share_K * (3 * along_K**2 - np.square(moved_KK).sum(0)) - 2 * np.diagonal(moved_KK) * along_K
    return np.asarray(3 * bent_K / norm_K)


def mean_over_examples(
    values_of: Callable[[Batch], np.ndarray],
    model: nn.Module,
    task: Task,
    arguments: Mapping[str, object],
    *,
    folder: Path | None,
    progress: Progress,
) -> Scores:
    """The mean of a value per example and head. values_of: function from a batch to [B, H]."""

    def contributed(batch: Batch) -> Arrays:
        values_BH = values_of(batch)
        return moments(values_BH, len(values_BH), locate(model))

    sums, signature = sums_over(task.batches(), contributed, model, task, arguments, folder=folder, progress=progress)
    return mean_scores(model, sums, signature, normalize=bool(arguments["normalize"]))
