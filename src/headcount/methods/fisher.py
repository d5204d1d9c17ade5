"""fisher: heads chosen by the Fisher information of their masks, then rearranged within each layer (Kwon et al. 2022).

The search takes each head for itself: its squared gradients, summed. Rearrangement leaves every layer its number of
heads and chooses those whose gradients, taken together, cancel best. No training.
Shapes: N examples (or batches), H heads of the model, S sets of heads, P heads of a site.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from torch import nn

from headcount import processes
from headcount.errors import UnknownName, UsageError
from headcount.heads import HeadGrid
from headcount.methods.cutting import Cutting, counted_heads, cut_out
from headcount.methods.method import Pruned
from headcount.methods.rank import Step
from headcount.record import Record, Signature
from headcount.scores.gradient import signed_gradients
from headcount.selection.budget import Budget
from headcount.selection.select import Rule, select
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.surgery.price import Price
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Task

Progress = Callable[[str, int, int], None]  # part, done, of
Granularity = Literal["example", "batch"]  # whose gradient is squared; the authors' code: batches of 32
_SETS = 20_000  # of heads of one site that are all tried; of more, pairs are swapped while that helps


def information(model: nn.Module, task: Task, *, granularity: Granularity = "example") -> np.ndarray:
    """[H, H]: sum over examples (or batches) of g g', g the gradient of the loss with respect to all masks, at 1."""
    if granularity not in get_args(Granularity):
        raise UnknownName("granularity", granularity, get_args(Granularity))
    heads = len(locate(model).heads)
    total_HH = np.zeros((heads, heads))
    with evaluating(model, gradients=True):
        for number, batch in enumerate(task.batches()):
            if number % processes.count() == processes.rank():
                gradient_NH = signed_gradients(model, task, batch)
                if granularity == "batch":
                    gradient_NH = gradient_NH.sum(0, keepdims=True)
                total_HH += gradient_NH.T @ gradient_NH
    every: np.ndarray = sum(processes.gather(total_HH))  # type: ignore[assignment]
    return every


def rearranged(block_PP: np.ndarray, gone: Sequence[int]) -> list[int]:
    """As many heads of a site as `gone`, chosen so that |sum of their gradients|^2 is least.

    Exact where there are few enough sets of heads; otherwise `gone` is improved by swaps while that helps.
    """
    heads, count = len(block_PP), len(gone)
    if math.comb(heads, count) <= _SETS:
        sets_SP = np.array([np.isin(range(heads), some) for some in combinations(range(heads), count)], dtype=float)
        cost_S = np.einsum("sp,pq,sq->s", sets_SP, block_PP, sets_SP)
        return [int(place) for place in np.flatnonzero(sets_SP[int(np.argmin(cost_S))])]
    return _swapped(block_PP, list(gone))


def _swapped(block_PP: np.ndarray, gone: list[int]) -> list[int]:
    def cost(some: Sequence[int]) -> float:
        return float(block_PP[np.ix_(some, some)].sum())

    while True:
        swaps = [
            [*(other for other in gone if other != out), new]
            for out in gone
            for new in range(len(block_PP))
            if new not in gone
        ]
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
    rule: Rule = "top",
    at_least: int = 0,
    rearrange: bool = True,
    price: Price | None = None,
) -> HeadGrid:
    """The mask that Fisher information asks for: its diagonal says how many heads of a site go, its block which."""
    sites = locate(model)
    diagonal = HeadGrid(list(zip(sites.heads, np.diagonal(information_HH).tolist(), strict=True)))
    mask = select(diagonal, budget, kinds=kinds, rule=rule, at_least=at_least, price=price)
    if not rearrange:
        return mask
    start = 0
    for site in sites:
        places, names = slice(start, start + site.num_heads), site.head_names()
        gone = [place for place, head in enumerate(names) if not mask[head]]
        chosen = rearranged(information_HH[places, places], gone) if gone else []
        mask = mask.replace({head: int(place not in chosen) for place, head in enumerate(names)})
        start += site.num_heads
    return mask


def prune_by_fisher(
    model: nn.Module,
    task: Task,
    *,
    budget: Budget,
    kinds: Sequence[str] | None = None,
    rule: Rule = "top",
    at_least: int = 0,
    granularity: Granularity = "example",
    rearrange: bool = True,
    compensate: str = "none",
    add_bias: bool = False,
    calibrate_on: Task | None = None,
    measure_on: Task | None = None,
    verify: bool = True,
    inplace: bool = False,
    length: int = 128,
    progress: Progress = lambda *_: None,
) -> Pruned:
    """Search, rearrange, remove; with compensate="scale" the three phases of the paper.

    granularity: whose gradients are squared: each example's, or each batch's as in the authors' code.
    rearrange: False leaves the search's choice. compensate, add_bias, calibrate_on: as in `cut_out`.
    """
    if not isinstance(budget, Budget):
        raise UsageError("The method fisher needs a budget: one number or share, for all kinds together.")
    counted = counted_heads(model, kinds)
    found_HH = information(model, task, granularity=granularity)
    progress("Fisher information", 1, 1)
    price = None if budget.counts == "heads" else Price(model, budget.counts, length=length)
    asked = {"kinds": kinds, "rule": rule, "at_least": at_least, "price": price}
    searched = search(model, found_HH, budget, rearrange=False, **asked)  # type: ignore[arg-type]
    mask = search(model, found_HH, budget, rearrange=rearrange, **asked)  # type: ignore[arg-type]
    if price is not None and price(mask) > price.limit(budget):
        mask = searched  # other heads of a group would keep a key/value head that was to go
    weights, elsewhere = weight_hash(model), measure_on or task
    before = elsewhere.quality(model)
    cutting = Cutting(compensate, add_bias, verify=verify, inplace=inplace, length=length)
    small, done = cut_out(model, mask, calibrate_on or task, cutting, progress=progress)
    after = Step(sum(not mask[head] for head in counted), mask, elsewhere.quality(small))
    steps = [Step(0, mask.map(lambda _: 1), before), after]
    parts = {
        "method": "fisher",
        "metric": before.metric.name,
        "measured_on": measured_on([task, *cutting.fitted_on(calibrate_on or task)], elsewhere),
        "curve": [step.to_plain(kinds or mask.kinds) for step in steps],
        "rearranged": [str(head) for head in mask.heads if mask[head] != searched[head]],
        **done,
    }
    arguments = {
        "granularity": granularity, "rearrange": rearrange, "kinds": kinds, "rule": rule, "at_least": at_least,
        "compensate": compensate,
    }  # fmt: skip
    return Pruned(small, mask, Record("prune", Signature("", weights, task.fingerprint, arguments=arguments), parts))


prune_by_fisher.any_budget = True  # type: ignore[attr-defined]
METHOD = prune_by_fisher
