"""select: the heads with the highest scores stay, as many as the budget allows. Pure: knows numbers, no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from headcount.errors import UnknownName, UsageError
from headcount.heads import Head, HeadGrid
from headcount.selection.budget import Budget

# top: wherever the highest scores are; uniform: the same number in every layer, which stock checkpoints can state
Rule = Literal["top", "uniform"]


def select(
    scores: HeadGrid,
    budget: Budget,
    *,
    kinds: Sequence[str] | None = None,
    rule: Rule = "top",
    at_least: int = 0,
    units: Sequence[Sequence[Head]] | None = None,
    price: Callable[[HeadGrid], float] | None = None,
) -> HeadGrid:
    """A mask that keeps the best heads of these kinds within the budget; heads of other kinds all stay.

    kinds: the kinds whose heads the budget counts; all, if not given.
    at_least: heads that every layer keeps, whatever their scores.
    units: heads that stay or go together, ranked by their mean score, such as `sites.groups`; each alone if not given.
    price: what the model costs under a mask, for budgets that do not count heads; `surgery.price` has some.
    Equal scores: the head that comes first in the model stays.
    """
    if rule not in get_args(Rule):
        raise UnknownName("rule", rule, get_args(Rule))
    if isinstance(kinds, str):
        raise UsageError(f"kinds is a list of attention kinds, such as ({kinds!r},); got the text {kinds!r}.")
    if units is not None:
        return _in_units(scores, budget, units, kinds=kinds, rule=rule, at_least=at_least, price=price)
    counted = scores.of(*kinds) if kinds is not None else scores
    if np.isnan(counted.numbers()).any():
        raise UsageError("Some scores are not numbers (NaN): they cannot be ranked.")
    layers = {site: _ranked(counted, site) for site in counted.sites}

    def mask(keep: int) -> HeadGrid:
        remaining = _uniform(layers, keep) if rule == "uniform" else _top(counted, layers, keep, at_least)
        return HeadGrid([(head, int(head in remaining or head not in counted)) for head in scores.heads])

    if budget.counts == "heads":
        return mask(budget.of(len(counted)))
    if price is None:
        raise UsageError(f"A budget of {budget.counts} needs price=, what the model costs under a mask.")
    size = len(layers) if rule == "uniform" else 1  # heads come and go in so many at once
    least = max(at_least, 0) * len(layers)
    limit = budget.limit(price(mask(len(counted))))
    steps = most_within(
        limit, lambda step: price(mask(step * size)), len(counted) // size, least // size, what=budget.counts
    )
    return mask(steps * size)


def _in_units(
    scores: HeadGrid,
    budget: Budget,
    units: Sequence[Sequence[Head]],
    *,
    kinds: Sequence[str] | None,
    rule: Rule,
    at_least: int,
    price: Callable[[HeadGrid], float] | None,
) -> HeadGrid:
    """As `select`, over units, each under the name of its first head."""
    named = {unit[0]: unit for unit in units}
    counted = [unit for unit in units if kinds is None or unit[0].kind in kinds]
    sizes = {len(unit) for unit in counted}
    if len(sizes) != 1:
        raise UsageError(f"Units of one budget have the same number of heads; got {sorted(sizes)}.")
    size = sizes.pop()

    def heads(mask: HeadGrid) -> HeadGrid:
        remaining = {head for representative in mask.kept for head in named[representative]}
        return HeadGrid([(head, int(head in remaining)) for head in scores.heads])

    of_units = HeadGrid(
        [(representative, float(np.mean([scores[head] for head in unit]))) for representative, unit in named.items()]
    )
    limits: dict[str, Any] = {"kinds": kinds, "rule": rule, "at_least": -(-at_least // size)}
    if price is not None:
        limits["price"] = lambda mask: price(heads(mask))
    if budget.counts == "heads" and budget.share is None:
        keep = budget.of(size * len(counted))
        if keep % size:
            raise UsageError(f"{keep} heads are no whole number of units: {size} heads go together.")
        budget = Budget(heads=keep // size)
    return heads(select(of_units, budget, **limits))


def most_within(limit: float, cost: Callable[[int], float], most: int, least: int = 0, *, what: str) -> int:
    """The largest number from `least` to `most` whose cost is within the limit; costs rise with the number."""
    if cost(least) > limit:
        raise UsageError(
            f"With {least} of these heads the model still costs {cost(least):,.4g} {what}; the budget allows "
            f"{limit:,.4g}. Pruning heads cannot save more than that."
        )
    low, high = least, most + 1  # within, and not known to be
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= limit else (low, middle)
    return low


def _ranked(scores: HeadGrid, site: tuple[str, int]) -> list[Head]:
    """The heads of a site, best first."""
    return sorted((head for head in scores.heads if head.site == site), key=lambda head: -scores[head])


def _top(scores: HeadGrid, layers: dict[tuple[str, int], list[Head]], keep: int, at_least: int) -> set[Head]:
    sure = {head for ranked in layers.values() for head in ranked[:at_least]}
    if len(sure) > keep:
        raise UsageError(
            f"Keeping at least {at_least} heads in each of {len(layers)} layers is more than the {keep} allowed."
        )
    candidates = sorted((head for head in scores.heads if head not in sure), key=lambda head: -scores[head])
    return sure | set(candidates[: keep - len(sure)])


def _uniform(layers: dict[tuple[str, int], list[Head]], keep: int) -> set[Head]:
    each, rest = divmod(keep, len(layers))
    if rest or each > min(map(len, layers.values())):
        fits = [number * len(layers) for number in range(min(map(len, layers.values())) + 1)]
        raise UsageError(f"{keep} heads cannot be spread evenly over {len(layers)} layers; possible: {fits}.")
    return {head for ranked in layers.values() for head in ranked[:each]}
