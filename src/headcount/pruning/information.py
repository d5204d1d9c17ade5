"""Fisher information of head masks: a search, then rearrangement within each layer (Kwon et al. 2022).

The search uses the summed squared gradients of each head. Rearrangement keeps the number of heads of every layer and
chooses those whose gradients, taken together, cancel best. No training.
Shapes: N examples (or batches), H heads of the model, S sets of heads, P heads of a site.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from torch import nn

from headcount import processes
from headcount.errors import check_name
from headcount.heads import HeadGrid
from headcount.probes.runs import site_runs
from headcount.scores.gradient import signed_gradients
from headcount.scores.one_pass import loss_task
from headcount.selection.budget import Budget
from headcount.selection.select import select
from headcount.selection.shape import FREE, Shape
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import SiteKey
from headcount.surgery.price import Price
from headcount.tasks.task import Task

Allowed = Callable[[Collection[int]], bool]  # whether heads of a site, by index, may be removed together
Granularity = Literal["example", "batch"]  # whose gradient is squared; the authors' code uses batches of 32
_SETS = 20_000  # most sets of heads of one site that are all tried; beyond, pairs are swapped


def information(model: nn.Module, task: Task, *, granularity: Granularity = "example") -> np.ndarray:
    """[H, H]: sum over examples (or batches) of g g', g the gradient of the loss with respect to all masks, at 1.

    NaN for heads whose site did not run.
    """
    task = loss_task("fisher", task)
    check_name("granularity", granularity, get_args(Granularity))
    heads = len(locate(model).heads)
    total_HH = np.zeros((heads, heads))
    with evaluating(model, gradients=True), site_runs(model) as runs:
        for batch in processes.mine(task.batches()):
            gradient_NH = signed_gradients(model, task, batch)
            if granularity == "batch":
                gradient_NH = gradient_NH.sum(0, keepdims=True)
            total_HH += gradient_NH.T @ gradient_NH
    information_HH: np.ndarray = sum(processes.gather(total_HH))  # type: ignore[assignment]
    all_runs: Counter[SiteKey] = sum(processes.gather(runs), Counter())
    idle_H = np.array([not all_runs[head.site] for head in locate(model).heads])
    information_HH[idle_H] = information_HH[:, idle_H] = np.nan
    return information_HH


def rearranged(block_PP: np.ndarray, gone: Sequence[int], allowed: Allowed = lambda _: True) -> list[int]:
    """As many heads of a site as `gone`, chosen so that |sum of their gradients|^2 is smallest.

    allowed: whether these heads may be removed together. Exact if there are few enough sets of heads; otherwise `gone`
        is improved by swaps while that helps.
    """
    heads, count = len(block_PP), len(gone)
    if math.comb(heads, count) <= _SETS:
        sets = [heads_of_set for heads_of_set in combinations(range(heads), count) if allowed(heads_of_set)]
        sets_SP = np.array([np.isin(range(heads), heads_of_set) for heads_of_set in sets], dtype=float)
        cost_S = np.einsum("sp,pq,sq->s", sets_SP, block_PP, sets_SP)
        return [int(index) for index in np.flatnonzero(sets_SP[int(np.argmin(cost_S))])]
    return _swapped(block_PP, list(gone), allowed)


def _keeps_shape(shape: Shape, groups: Sequence[Sequence[int]]) -> Allowed:
    """Whether a layer keeps even or whole groups without some heads, whatever their number."""

    def check(gone: Collection[int]) -> bool:
        sizes = [(sum(index not in gone for index in group), len(group)) for group in groups]
        even = shape.groups == "any" or len({count for count, _ in sizes if count}) <= 1
        return even and (shape.unit == "head" or all(count in (0, size) for count, size in sizes))

    return check


def _swapped(block_PP: np.ndarray, gone: list[int], allowed: Allowed = lambda _: True) -> list[int]:
    def cost(indices: Sequence[int]) -> float:
        return float(block_PP[np.ix_(indices, indices)].sum())

    while True:
        swaps = [
            [*(other for other in gone if other != out), new]
            for out in gone
            for new in range(len(block_PP))
            if new not in gone
        ]
        swaps = [indices for indices in swaps if allowed(indices)]
        best = min(swaps, key=cost, default=gone)
        if cost(best) >= cost(gone) - 1e-12 * abs(cost(gone)):
            return sorted(gone)
        gone = best


def search(
    model: nn.Module,
    information_HH: np.ndarray,
    budget: Budget,
    *,
    kinds: Sequence[str] | None = None,
    shape: Shape = FREE,
    price: Price | None = None,
) -> HeadGrid:
    """The mask by the diagonal of the Fisher information, which decides how many heads of a site are removed."""
    sites = locate(model)
    diagonal = HeadGrid(list(zip(sites.heads, np.diagonal(information_HH).tolist(), strict=True)))
    return select(diagonal, budget, kinds=kinds, shape=shape, groups=sites.groups, price=price)


def rearrange(model: nn.Module, information_HH: np.ndarray, mask: HeadGrid, *, shape: Shape = FREE) -> HeadGrid:
    """A mask with as many heads at every site, those that the site's block of the information chooses."""
    for site, block in locate(model).columns():
        names = site.head_names()
        gone = [index for index, head in enumerate(names) if not mask[head]]
        grouped = site.groups if shape.groups == "even" or shape.unit == "group" else ()
        groups = [[site.heads.index(head) for head in group] for group in grouped]
        removed = rearranged(information_HH[block, block], gone, _keeps_shape(shape, groups)) if gone else []
        mask = mask.replace({head: int(index not in removed) for index, head in enumerate(names)})
    return mask
