"""Layers: the numbers of heads that a shape allows, and the best heads for each number. Pure functions.

The best set of n heads has the highest sum of scores. The best sets of each layer are found for every number of heads;
dynamic programming then distributes the total over the layers, which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.selection.budget import Budget
from headcount.selection.shape import Shape

_ROUNDING = 1e-12  # relative to the terms of a sum; sums that differ by less are ties


@dataclass(frozen=True)
class BestSet:
    """The heads of one layer with the highest sum of scores, among sets of their size."""

    value: float
    heads: tuple[tuple[int, int], ...]  # group, index in the group


@dataclass(frozen=True)
class Layers:
    """The heads that may be removed, in groups that share a key/value head, and the shape of the remaining ones."""

    groups: tuple[tuple[Head, ...], ...]
    shape: Shape

    @cached_property
    def by_layer(self) -> dict[tuple[str, int], list[tuple[Head, ...]]]:
        layers: dict[tuple[str, int], list[tuple[Head, ...]]] = {}
        for group in self.groups:
            layers.setdefault(group[0].site, []).append(group)
        return layers

    @property
    def total(self) -> int:
        return sum(map(len, self.groups))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """All numbers of heads that can be kept."""
        return self._counts({head for group in self.groups for head in group})

    def _counts(self, available: set[Head]) -> tuple[int, ...]:
        allowed = [
            allowed_counts(tuple(sum(head in available for head in group) for group in groups), self.shape, key[1])
            for key, groups in self.by_layer.items()
        ]
        if self.shape.rule == "uniform":
            return tuple(len(allowed) * number for number in sorted(frozenset.intersection(*allowed)))
        sums = 1  # bit n: n heads can be kept
        for numbers in allowed:
            sums = sum_of_shifts(sums, numbers)
        return tuple(number for number in range(self.total + 1) if sums >> number & 1)

    def reaches(self, available: set[Head], count: int | None = None) -> bool:
        """Whether some of these heads can be removed such that `count` (or any number) are left in the shape."""
        counts = self._counts(available)
        return bool(counts) if count is None else count in counts

    def fitted(self, budget: Budget) -> int:
        """The number of heads to keep under a budget; a share becomes the nearest number that the shape allows."""
        requested = budget.of(self.total)
        if not self.counts:
            raise UsageError(f"No number of heads fits {self.shape.in_words()}: relax the constraint.")
        if requested in self.counts:
            return requested
        nearest = self.nearest(requested)
        if budget.share is not None:
            return nearest
        below = [number for number in self.counts if number < requested]
        above = [number for number in self.counts if number > requested]
        numbers = " or ".join(map(str, (*below[-1:], *above[:1])))
        raise UsageError(
            f"Cannot keep {requested} of {self.total} heads in {len(self.by_layer)} layers with "
            f"{self.shape.in_words()}; the nearest number is {numbers}."
        )

    def nearest(self, requested: int) -> int:
        """The nearest number of heads that the shape allows; the smaller of two equally near ones, but not 0."""
        numbers = [number for number in self.counts if number or not requested] or list(self.counts)
        return min(numbers, key=lambda number: abs(number - requested))

    def best(self, scores: Mapping[Head, float], count: int) -> set[Head]:
        """The set of this many heads with the highest sum of scores; the first of equal sets.

        Heads with infinite scores come before or after all others: their number decides first.
        """
        finite = finite_scores(scores)
        tables = [
            best_sets([[finite[head] for head in group] for group in groups], self.shape, layer)
            for (_, layer), groups in self.by_layer.items()
        ]
        layers = len(self.by_layer)
        numbers = [count // layers] * layers if self.shape.rule == "uniform" else share_out(tables, count)
        return {
            groups[group][index]
            for groups, table, number in zip(self.by_layer.values(), tables, numbers, strict=True)
            for group, index in table[number].heads
        }


def finite_scores(scores: Mapping[Head, float]) -> dict[Head, float]:
    """Scores that can be summed: infinite ones become so large that no sum of all others outweighs one of them."""
    reach = max((abs(score) for score in scores.values() if math.isfinite(score)), default=0.0) or 1.0
    infinity = 2 * len(scores) * reach
    return {head: min(max(float(score), -infinity), infinity) for head, score in scores.items()}


def sum_of_shifts(sums: int, numbers: Sequence[int] | frozenset[int]) -> int:
    """Bits of all sums of a number whose bit is set and one of these numbers."""
    result = 0
    for number in numbers:
        result |= sums << number
    return result


@cache
def allowed_counts(sizes: tuple[int, ...], shape: Shape, layer: int) -> frozenset[int]:
    """Numbers of heads that a layer with groups of these sizes can keep."""
    return frozenset(best_sets([[0.0] * size for size in sizes], shape, layer))


def best_sets(groups: Sequence[Sequence[float]], shape: Shape, layer: int) -> dict[int, BestSet]:
    """For each number of heads that a shape allows in a layer, the heads with the highest sum of scores."""
    sets: dict[int, BestSet] = {}
    for best in _candidate_sets(groups, shape):
        number = len(best.heads)
        if number < shape.least(layer) or number % shape.multiple:
            continue
        if number not in sets or best.value > sets[number].value:
            sets[number] = best
    return sets


def _candidate_sets(groups: Sequence[Sequence[float]], shape: Shape) -> Iterator[BestSet]:
    """Candidate sets of heads of a layer; they include the best set of each size."""
    ranked = [sorted(range(len(group)), key=lambda index, of=group: -of[index]) for group in groups]  # type: ignore[misc]
    if shape.groups == "even":
        for size in range(1, max(map(len, groups), default=0) + 1):
            fits = size.__eq__ if shape.unit == "group" else size.__le__
            yield from _prefixes([(i, ranked[i][:size]) for i, group in enumerate(groups) if fits(len(group))], groups)
        return
    if shape.unit == "group":
        yield from _unions([(i, indices) for i, indices in enumerate(ranked)], groups)
        return
    yield from _prefixes([(i, [index]) for i, indices in enumerate(ranked) for index in sorted(indices)], groups)


def _value(part: tuple[int, Sequence[int]], groups: Sequence[Sequence[float]]) -> float:
    group, indices = part
    return sum(groups[group][index] for index in indices)


def _prefixes(parts: Sequence[tuple[int, Sequence[int]]], groups: Sequence[Sequence[float]]) -> Iterator[BestSet]:
    """The best part, the best two parts, and so on, for parts of equal size."""
    yield BestSet(0.0, ())
    value, heads = 0.0, []
    for part in sorted(parts, key=lambda part: -_value(part, groups)):
        value += _value(part, groups)
        heads += [(part[0], index) for index in part[1]]
        yield BestSet(value, tuple(heads))


def _unions(parts: Sequence[tuple[int, Sequence[int]]], groups: Sequence[Sequence[float]]) -> Iterator[BestSet]:
    """For each number of heads, the best union of parts of any size."""
    sets = {0: BestSet(0.0, ())}
    for group, indices in parts:
        for number, best in sorted(sets.items(), reverse=True):
            value = best.value + _value((group, indices), groups)
            larger = BestSet(value, (*best.heads, *((group, index) for index in indices)))
            if indices and (number + len(indices) not in sets or value > sets[number + len(indices)].value):
                sets[number + len(indices)] = larger
    yield from sets.values()


def share_out(tables: Sequence[Mapping[int, BestSet]], count: int) -> list[int]:
    """Number of heads of each layer that gives the highest sum for a total; if equal, earlier layers keep more."""
    after = [np.full(count + 1, -np.inf)]  # [n]: the highest sum of the later layers with n heads
    after[0][0] = 0.0
    for table in reversed(tables):
        sums = np.full(count + 1, -np.inf)
        for number, best in table.items():
            if number <= count:
                np.maximum(sums[number:], best.value + after[-1][: count + 1 - number], out=sums[number:])
        after.append(sums)
    after.pop()
    numbers, left = [], count
    for table, sums in zip(tables, reversed(after), strict=True):
        terms = {number: (best.value, float(sums[left - number])) for number, best in table.items() if number <= left}
        highest = max(terms.values(), key=sum, default=(-np.inf,))
        if sum(highest) == -np.inf:
            raise UsageError(f"Cannot keep {count} heads in this shape.")
        margin = _ROUNDING * sum(map(abs, highest))
        numbers.append(max(number for number, pair in terms.items() if sum(pair) >= sum(highest) - margin))
        left -= numbers[-1]
    return numbers
