"""Ranking: heads go in the order of their scores, a few at a time (Michel et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.heads import HeadGrid
from headcount.probes.masks import masked
from headcount.progress import Progress, silent
from headcount.record.result import Step as StepResult
from headcount.scores.score import score
from headcount.selection.budget import Budget
from headcount.selection.select import Rule, select
from headcount.sites.locate import locate
from headcount.statistics import bootstrap_interval
from headcount.tasks.task import Quality, Task

Unit = Literal["head", "group"]


@dataclass(frozen=True)
class Order:
    """How heads are ranked, and whether again after each step."""

    score: str = "gradient"
    recompute: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def scores(self, model: nn.Module, task: Task) -> HeadGrid:
        return score(self.score, model, task, **dict(self.options))


@dataclass(frozen=True)
class Step:
    """A point of the curve: how many heads are gone, and how good the model is without them."""

    removed: int
    mask: HeadGrid
    quality: Quality

    def to_result(self, kinds: Sequence[str]) -> StepResult:
        """For a record. kinds: those that may go."""
        kept_heads = self.mask.kept
        return StepResult(
            self.removed,
            self.removed / max(1, sum(head.kind in kinds for head in self.mask.heads)),
            *bootstrap_interval(self.quality.statistics, self.quality.metric.of_sums),
            kept_by_kind={kind: sum(head.kind == kind for head in kept_heads) for kind in self.mask.kinds},
            heads=tuple(str(head) for head in kept_heads),
        )


@dataclass(frozen=True)
class Restrictions:
    """Which heads may go, and how many of them at a time."""

    kinds: Sequence[str] | None = None
    rule: Rule = "top"
    at_least: int = 0
    unit: Unit = "head"  # or whole groups of heads that share a key/value head


_NONE = Restrictions()


def ranked_masks(
    model: nn.Module, task: Task, order: Order, counts: Sequence[int], restrictions: Restrictions = _NONE
) -> Iterator[HeadGrid]:
    """Masks without so many heads, ever more of them, worst first."""
    sites = locate(model)
    total = len(sites.of_kinds(restrictions.kinds))
    mask, units = sites.mask(), sites.groups if restrictions.unit == "group" else None
    scores = order.scores(model, task)
    for number, count in enumerate(counts):
        if order.recompute and count and number:
            with masked(model, mask):
                scores = order.scores(model, task)
        if count:  # nothing has to fit a rule where nothing goes
            mask = select(
                _behind(scores, mask), Budget(heads=total - count), kinds=restrictions.kinds, rule=restrictions.rule,
                at_least=restrictions.at_least, units=units,
            )  # fmt: skip
        yield mask


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
    """The model with ever more heads masked, `counts` of them, worst first.

    measure_on: the data the quality is measured on; scores are taken on `task`.
    """
    masks = ranked_masks(model, task, order, counts, restrictions)
    for number, (count, mask) in enumerate(zip(counts, masks, strict=True), start=1):
        with masked(model, mask):
            quality = (measure_on or task).quality(model)
        progress(f"pruning by {order.score}", number, len(counts))
        yield Step(count, mask, quality)


def _behind(scores: HeadGrid, mask: HeadGrid) -> HeadGrid:
    """Heads that are gone rank below all others."""
    lowest = float(np.min(scores.numbers())) - 1.0
    return HeadGrid([(head, float(scores[head]) if mask[head] else lowest) for head in scores.heads])


def group_size(model: nn.Module, kinds: Sequence[str] | None, unit: Unit) -> int:
    """Heads that go together."""
    if unit == "head":
        return 1
    return max(len(group) for group in locate(model).groups if kinds is None or group[0].kind in kinds)


def counts_to(total: int, gone: int, step: float, *, size: int = 1) -> list[int]:
    """Numbers of heads gone after each step of a share of `total`: 0, ..., up to `gone` exactly, `size` at a time."""
    if not 0 < step <= 1:
        raise UsageError(f"A step is a share of the heads above 0 and at most 1 (0.1 is 10%); got {step}.")
    marks = {min(gone, size * round(number * step * total / size)) for number in range(int(1 / step) + 2)}
    return sorted({0, *marks, gone})
