"""select: keep the heads with the highest scores within a budget. A pure function that knows no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headcount.errors import UsageError, check_type
from headcount.heads import Head, HeadGrid
from headcount.selection.budget import Budget
from headcount.selection.layers import Layers
from headcount.selection.shape import Shape


def select(
    scores: HeadGrid,
    budget: Budget,
    *,
    kinds: Sequence[str] | None = None,
    shape: Shape | None = None,
    groups: Sequence[Sequence[Head]] | None = None,
    units: Sequence[Sequence[Head]] | None = None,
    price: Callable[[HeadGrid], float] | None = None,
    **constraints: Any,
) -> HeadGrid:
    """Select the best heads within a budget.

    Among all sets of heads that fit the budget and the shape, the mask keeps the one with the highest sum of scores. If
    scores are equal, the head that comes first in the model is kept: always the same mask, but one that has to do with
    where heads are. Studies and `prune` put equal heads in random order first.

    Args:
        scores: Scores of all heads; higher means more important. Infinite scores come before or after all others.
        budget: How much to keep.
        kinds: Kinds of attention that the budget counts. Heads of other kinds are all kept. By default all kinds.
        shape: Constraints on the remaining heads.
        groups: Heads that share a key/value head (`sites.groups`), for shapes with even or whole groups.
        units: Heads that are kept or removed together: the same as `groups` with unit="group".
        price: Function from a mask to the cost of the model, for budgets that do not count heads.
            `headcount.surgery.price` has some.
        constraints: Fields of `Shape` as keywords, such as rule="uniform" or at_least=1.

    Returns:
        A mask with 1 for heads to keep and 0 for heads to remove.

    Raises:
        UsageError: If scores are NaN, groups do not have the heads that are counted, or no number of heads fits the
            budget and the shape.
    """
    if isinstance(kinds, str):
        raise UsageError(f"kinds must be a list of attention kinds, such as ({kinds!r},); got the string {kinds!r}.")
    check_type("scores", scores, HeadGrid, "scores of heads, from hc.score(...)")
    if not isinstance(budget, Budget):
        raise UsageError(f"The budget must be a Budget, such as hc.Budget(heads=10); got {budget!r}.")
    shape = (shape or Shape()).and_also(Shape.of(constraints))
    if units is not None:
        groups, shape = units, shape.and_also(Shape(unit="group"))
    if groups is None and (shape.unit == "group" or shape.groups == "even"):
        raise UsageError(f"A shape of {shape.in_words()} needs groups=, heads that share a key/value head.")
    counted = scores.of(*kinds) if kinds is not None else scores
    _check_numbers(counted)
    layers = counted_layers([(head,) for head in counted.heads] if groups is None else groups, kinds, shape)
    _check_groups(counted, layers)

    def mask(keep: int) -> HeadGrid:
        remaining = _top(counted, layers, keep) if shape.nested else layers.best(dict(counted.items()), keep)
        return HeadGrid([(head, int(head in remaining or head not in counted)) for head in scores.heads])

    if budget.counts == "heads":
        return mask(layers.fitted(budget))
    if price is None:
        raise UsageError(f"A budget of {budget.counts} needs price=, a function from a mask to the cost of the model.")
    limit = budget.limit(price(HeadGrid([(head, 1) for head in scores.heads])))
    return mask(most_within(limit, lambda keep: price(mask(keep)), layers.counts, what=budget.counts))


def _check_numbers(counted: HeadGrid) -> None:
    unknown = [head for head, value in zip(counted.heads, counted.numbers(), strict=True) if np.isnan(value)]
    if not unknown:
        return
    names = ", ".join(map(str, unknown[:3])) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
    ranked = tuple(kind for kind in counted.kinds if kind not in {head.kind for head in unknown})
    advice = f"Choose among the kinds that have numbers: kinds={ranked}." if ranked else "Score them on other data."
    raise UsageError(
        f"Scores of {names} are not numbers (NaN), as of heads that did not run on the data: they cannot be ranked. "
        f"{advice}"
    )


def counted_layers(groups: Sequence[Sequence[Head]], kinds: Sequence[str] | None, shape: Shape) -> Layers:
    """The heads of these kinds, in groups."""
    return Layers(tuple(tuple(group) for group in groups if kinds is None or group[0].kind in kinds), shape)


def _check_groups(counted: HeadGrid, layers: Layers) -> None:
    """Every counted head must be in one group: heads in none would be counted nowhere and removed."""
    times = Counter(head for group in layers.groups for head in group)
    wrong = [head for head in {**counted, **times} if times[head] != 1 or head not in counted]
    if wrong:
        head, scored = wrong[0], "has a score" if wrong[0] in counted else "has no score"
        raise UsageError(
            f"Groups must have each head with a score once; {head} {scored} and is in {times[head]} of them. Give "
            "sites.groups of the model that was scored, or groups of one for heads that stay or go alone."
        )


def most_within(limit: float, cost: Callable[[int], float], numbers: Sequence[int], *, what: str) -> int:
    """The largest of these numbers of heads whose cost is within the limit; costs rise with the number."""
    if not numbers:
        raise UsageError("No number of heads fits this shape: relax the constraint.")
    if cost(numbers[0]) > limit:
        raise UsageError(
            f"With {numbers[0]} of these heads the model still costs {cost(numbers[0]):,.4g} {what}; the budget allows "
            f"{limit:,.4g}. Pruning heads cannot save more than that."
        )
    low, high = 0, len(numbers)  # index within the limit; first index that may exceed it
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(numbers[middle]) <= limit else (low, middle)
    return numbers[low]


def _top(scores: HeadGrid, layers: Layers, keep: int) -> set[Head]:
    """The best heads of every layer up to its minimum, and the best of all others."""
    order = sorted(scores.heads, key=lambda head: -scores[head])
    sure: set[Head] = set()
    for site in layers.by_layer:
        sure.update([head for head in order if head.site == site][: layers.shape.least(site[1])])
    return sure | set([head for head in order if head not in sure][: keep - len(sure)])
