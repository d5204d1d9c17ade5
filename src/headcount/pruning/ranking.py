"""Ranking: remove heads in the order of their scores, a few at a time (Michel et al. 2019, section 4)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.heads import HeadGrid
from headcount.probes.masks import masked
from headcount.progress import Progress, silent
from headcount.record.result import Step as StepResult
from headcount.scores.score import score
from headcount.selection.budget import Budget
from headcount.selection.select import select
from headcount.selection.shape import FREE, Shape
from headcount.sites.fingerprint import model_seed, weight_hash
from headcount.sites.locate import locate
from headcount.statistics import Interval, bootstrap_interval
from headcount.surgery.price import Price
from headcount.tasks.quality import Quality
from headcount.tasks.task import Task

_OF_TIES = -1  # seed of the order of equal heads; random orders have 0 and above


@dataclass(frozen=True)
class Order:
    """How heads are ranked, and whether again after each step. Equal heads are in random order, see `untied`."""

    score: str = "gradient"
    recompute: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def scores(self, model: nn.Module, task: Task) -> HeadGrid:
        return score(self.score, model, task, **dict(self.options))


def untied(scores: HeadGrid, model: nn.Module) -> HeadGrid:
    """The scores, with equal ones a little apart: in an order drawn at random, another one for every model.

    Most heads change no answer, so that ablation by accuracy gives them the same score. In the order of the model, one
    end of it would go first, and the order would be as good or bad as that end is.
    """
    values_H = np.asarray(scores.numbers(), dtype=np.float64)
    finite = values_H[np.isfinite(values_H)]
    distinct = np.unique(finite)
    if len(distinct) == len(finite):
        return scores
    random = np.random.default_rng(model_seed(weight_hash(model), _OF_TIES))
    apart_H = values_H.copy()
    largest = 1e-9 * (np.abs(distinct).max() or 1.0)  # far below what makes two scores different
    for value, above in pairwise([*distinct, np.inf]):
        equal = np.flatnonzero(values_H == value)
        step = min(largest, (above - value) / 2) / len(equal)
        apart_H[equal] += step * random.permutation(len(equal))
    return HeadGrid(list(zip(scores.heads, apart_H.tolist(), strict=True)))


@dataclass(frozen=True)
class Step:
    """A point of the curve: number of masked heads, and quality without them."""

    removed: int
    mask: HeadGrid
    quality: Quality
    tied: int | None = None  # removed heads with the score of one that is kept; None if heads have no scores

    @classmethod
    def of(cls, mask: HeadGrid, quality: Quality) -> Step:
        return cls(len(mask) - len(mask.kept), mask, quality)

    def to_result(self, kinds: Sequence[str], whole: Quality | None = None) -> StepResult:
        """The step as stored in a record. kinds: of heads that may be removed. whole: quality with all heads."""
        kept_heads = self.mask.kept
        return StepResult(
            self.removed,
            self.removed / max(1, sum(head.kind in kinds for head in self.mask.heads)),
            *self.quality.interval(),
            kept_by_kind={kind: sum(head.kind == kind for head in kept_heads) for kind in self.mask.kinds},
            heads=tuple(str(head) for head in kept_heads),
            kept=kept(self.quality, whole) if whole is not None else None,
            tied=self.tied,
            change=Interval(*self.quality.against(whole)[:3]) if whole is not None else None,
        )


def kept(quality: Quality, whole: Quality) -> Interval:
    """Share of the score that remains, on the same examples; for a loss or perplexity, whole / pruned.

    No narrower than the change of the score has it: pairs of which few differ vary too little (of 30 answers with 8%
    lost, 9.6% of lower ends are above the truth). A loss whose change may reach 0 has no upper end, which is NaN. Of a
    score that is not above 0, as Matthews' of a model worse than chance, no share remains: all are NaN.
    """
    metric = whole.metric
    if not whole.value > 0:
        return Interval(np.nan, np.nan, np.nan)
    pair = [quality.statistics, whole.statistics] if metric.higher_is_better else [whole.statistics, quality.statistics]

    def share(sums: np.ndarray) -> np.ndarray:
        """[..., 2, C] -> [...]; NaN where the score to divide by is not above 0."""
        over, under = np.moveaxis(metric.of_sums(sums), -1, 0)
        return np.divide(over, under, out=np.full_like(over, np.nan), where=under > 0)

    paired = bootstrap_interval(np.stack(pair, axis=1), share)
    if quality is whole:
        return paired
    change = quality.against(whole)
    scores = (whole.value + change.low, whole.value + change.high)
    if metric.higher_is_better:
        ends = [score / whole.value for score in scores]
        return paired._replace(low=min(paired.low, *ends), high=max(paired.high, *ends))
    highest, lowest = (np.inf if score <= 0 else whole.value / score for score in scores)
    low, high = float(np.maximum(0, min(paired.low, lowest))), max(paired.high, highest)
    return paired._replace(low=low, high=high if high < np.inf else np.nan)


@dataclass(frozen=True)
class Restrictions:
    """The kinds of heads that may be removed, and the shape of the remaining ones."""

    kinds: Sequence[str] | None = None
    shape: Shape = FREE


_NONE = Restrictions()


def ranked_masks(
    model: nn.Module, task: Task, order: Order, counts: Sequence[int], restrictions: Restrictions = _NONE
) -> Iterator[HeadGrid]:
    """Masks that remove more and more heads, lowest score first."""
    return (mask for mask, _ in _ranked(model, task, order, counts, restrictions))


def priced_masks(
    model: nn.Module,
    task: Task,
    order: Order,
    counts: Sequence[int],
    restrictions: Restrictions = _NONE,
    *,
    budget: Budget,
    price: Price,
) -> Iterator[HeadGrid]:
    """Masks that remove more and more heads, lowest score first, up to the largest model within the budget."""
    limit = price.limit(budget)
    for mask, scores in _ranked(model, task, order, counts, restrictions):
        if price(mask) <= limit:
            yield select(
                untied(scores, model), budget, kinds=restrictions.kinds, shape=restrictions.shape,
                groups=locate(model).groups, price=price,
            )  # fmt: skip
            return
        yield mask
    if budget.counts == "milliseconds":  # of other costs, those of the pruned model are compared at the end
        warnings.warn(
            f"The model with the fewest heads that can stay takes {price(mask):.4g} milliseconds; the budget {budget} "
            f"allows {limit:.4g}. Give a larger budget, or a shape with fewer heads.",
            stacklevel=2,
        )


def _ranked(
    model: nn.Module, task: Task, order: Order, counts: Sequence[int], restrictions: Restrictions
) -> Iterator[tuple[HeadGrid, HeadGrid]]:
    """The masks, each with the scores that it is by."""
    sites = locate(model)
    total = len(sites.of_kinds(restrictions.kinds))
    mask, scores = sites.mask(), order.scores(model, task)
    apart = untied(scores, model)
    for number, count in enumerate(counts):
        if order.recompute and count and number:
            with masked(model, mask):
                scores = _behind(order.scores(model, task), mask)
            apart = untied(scores, model)
        if count:  # a shape applies only if heads are removed
            mask = select(
                apart, Budget(heads=total - count), kinds=restrictions.kinds, shape=restrictions.shape,
                groups=sites.groups,
            )  # fmt: skip
        yield mask, scores


def curve(
    model: nn.Module,
    task: Task,
    order: Order,
    counts: Sequence[int],
    *,
    measure_on: Task | None = None,
    restrictions: Restrictions = _NONE,
    progress: Progress = silent,
) -> Iterator[Step]:
    """Quality of the model with `counts` heads masked, lowest scores first.

    measure_on: data to measure quality on; scores are computed on `task`.
    """
    ranked = _ranked(model, task, order, counts, restrictions)
    for number, (count, (mask, scores)) in enumerate(zip(counts, ranked, strict=True), start=1):
        with masked(model, mask):
            quality = (measure_on or task).quality(model)
        progress(f"pruning by {order.score}", number, len(counts))
        yield Step(count, mask, quality, _tied(scores, mask, restrictions.kinds))


def _tied(scores: HeadGrid, mask: HeadGrid, kinds: Sequence[str] | None) -> int:
    """Removed heads with the score of one that is kept: chance chose between them."""
    counted = scores.of(*kinds) if kinds is not None else scores
    remaining = {counted[head] for head in counted.heads if mask[head]}
    return sum(counted[head] in remaining for head in counted.heads if not mask[head])


def _behind(scores: HeadGrid, mask: HeadGrid) -> HeadGrid:
    """Scores in which removed heads rank below all others, so that they return only if the shape requires it."""
    return HeadGrid([(head, float(scores[head]) if mask[head] else -np.inf) for head in scores.heads])


def counts_to(total: int, gone: int, step: float, *, allowed: Sequence[int] | None = None) -> list[int]:
    """Numbers of removed heads after each step of a share of `total`: 0, ..., `gone`.

    allowed: possible numbers of removed heads; the nearest is used. By default all.
    """
    if not 0 < step <= 1:
        raise UsageError(f"step must be a share of the heads above 0 and at most 1 (0.1 is 10%); got {step}.")
    marks = [min(gone, round(number * step * total)) for number in range(int(1 / step) + 2)]
    if allowed is not None:
        numbers = [number for number in allowed if number <= gone]
        marks = [min(numbers, key=lambda number, mark=mark: abs(number - mark)) for mark in marks]  # type: ignore[misc]
    return sorted({0, *marks, gone})
