"""rank: heads go in the order of their scores, a few at a time (Michel et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from torch import nn

from headcount.errors import UnknownName, UsageError
from headcount.heads import HeadGrid
from headcount.methods.cutting import Cutting, counted_heads, cut_out
from headcount.methods.method import Pruned
from headcount.probes.masks import masked
from headcount.record import Record, Signature
from headcount.scores.score import score
from headcount.selection.budget import Budget
from headcount.selection.select import Rule, select
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import bootstrap_interval
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Quality, Task

Progress = Callable[[str, int, int], None]  # part, done, of
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

    def to_plain(self, kinds: Sequence[str]) -> dict[str, Any]:
        interval = bootstrap_interval(self.quality.statistics, self.quality.metric.of_sums)
        kept = self.mask.kept
        return {
            "removed": self.removed,
            "share": self.removed / max(1, sum(head.kind in kinds for head in self.mask.heads)),
            **dict(zip(("value", "low", "high"), interval, strict=True)),
            "kept": {
                kind: sum(head.kind == kind for head in kept) for kind in dict.fromkeys(h.kind for h in self.mask)
            },
            "heads": [str(head) for head in kept],
        }


def curve(
    model: nn.Module,
    task: Task,
    order: Order,
    counts: Sequence[int],
    *,
    measure_on: Task | None = None,
    kinds: Sequence[str] | None = None,
    rule: Rule = "top",
    at_least: int = 0,
    unit: Unit = "head",
    progress: Progress = lambda *_: None,
) -> Iterator[Step]:
    """The model with ever more heads masked, `counts` of them, worst first.

    measure_on: the data the quality is measured on; scores are taken on `task`.
    unit: what goes at a time: heads, or whole groups of heads that share a key/value head.
    """
    heads = locate(model).heads
    counted = [head for head in heads if kinds is None or head.kind in kinds]
    mask, units = locate(model).mask(), locate(model).groups if unit == "group" else None
    scores = order.scores(model, task)
    for number, count in enumerate(counts, start=1):
        if order.recompute and count and number > 1:
            with masked(model, mask):
                scores = order.scores(model, task)
        ranked = _behind(scores, mask)
        limits: dict[str, Any] = {"kinds": kinds, "rule": rule, "at_least": at_least, "units": units}
        if count:  # nothing has to fit a rule where nothing goes
            mask = select(ranked, Budget(heads=len(counted) - count), **limits)
        with masked(model, mask):
            quality = (measure_on or task).quality(model)
        progress(f"pruning by {order.score}", number, len(counts))
        yield Step(count, mask, quality)


def _behind(scores: HeadGrid, mask: HeadGrid) -> HeadGrid:
    """Heads that are gone rank below all others."""
    lowest = float(np.min(scores.numbers())) - 1.0
    return HeadGrid([(head, float(scores[head]) if mask[head] else lowest) for head in scores.heads])


def counts_to(total: int, gone: int, step: float, *, size: int = 1) -> list[int]:
    """Numbers of heads gone after each step of a share of `total`: 0, ..., up to `gone` exactly, `size` at a time."""
    if not 0 < step <= 1:
        raise UsageError(f"A step is a share of the heads above 0 and at most 1 (0.1 is 10%); got {step}.")
    marks = {min(gone, size * round(number * step * total / size)) for number in range(int(1 / step) + 2)}
    return sorted({0, *marks, gone})


def prune_by_rank(
    model: nn.Module,
    task: Task,
    *,
    budget: Budget | Mapping[str, Budget] | None,
    kinds: Sequence[str] | None = None,
    order: str = "gradient",
    recompute: bool = False,
    step: float = 0.1,
    rule: Rule = "top",
    at_least: int = 0,
    unit: Unit = "head",
    measure_on: Task | None = None,
    verify: bool = True,
    inplace: bool = False,
    length: int = 128,
    compensate: str = "none",
    add_bias: bool = False,
    calibrate_on: Task | None = None,
    progress: Progress = lambda *_: None,
    **options: Any,
) -> Pruned:
    """Mask heads step by step, worst first, measure after each step, and remove them.

    order: a score. recompute: score again after each step, on what is left. step: share of the heads at a time.
    unit: "group" takes whole groups of heads that share a key/value head; with rule "uniform" that leaves a stock
        checkpoint, where the architecture allows. rule, at_least: as in `select`. options: of the score.
    compensate, add_bias, calibrate_on: as in `cut_out`.
    """
    if not isinstance(budget, Budget):
        raise UsageError("The method rank needs a budget: one number or share of heads, for all kinds together.")
    counted = counted_heads(model, kinds)
    size = _size(model, kinds, unit)
    keep = budget.of(len(counted))
    gone = len(counted) - (size * round(keep / size) if budget.share is not None else keep)
    ranked = Order(order, recompute, tuple(options.items()))
    # Only the last step must spread evenly over layers: those on the way may not be able to.
    numbers = [0, gone] if rule == "uniform" else counts_to(len(counted), gone, step, size=size)
    limits = {"kinds": kinds, "rule": rule, "at_least": at_least, "unit": unit}
    steps = list(curve(model, task, ranked, numbers, measure_on=measure_on, progress=progress, **limits))  # type: ignore[arg-type]
    mask, weights = steps[-1].mask, weight_hash(model)
    cutting = Cutting(compensate, add_bias, verify=verify, inplace=inplace, length=length)
    small, done = cut_out(model, mask, calibrate_on or task, cutting, measure_on=measure_on or task, progress=progress)
    parts = {
        "method": "rank",
        "metric": steps[0].quality.metric.name,
        "measured_on": measured_on([task, *cutting.fitted_on(calibrate_on or task)], measure_on or task),
        "curve": [point.to_plain(kinds or mask.kinds) for point in steps],
        **done,
    }
    arguments = {"order": order, "recompute": recompute, "step": step, **limits, "compensate": compensate, **options}
    return Pruned(small, mask, Record("prune", Signature("", weights, task.fingerprint, arguments=arguments), parts))


def _size(model: nn.Module, kinds: Sequence[str] | None, unit: Unit) -> int:
    """Heads that go together."""
    if unit not in get_args(Unit):
        raise UnknownName("unit", unit, get_args(Unit))
    if unit == "head":
        return 1
    return max(len(group) for group in locate(model).groups if kinds is None or group[0].kind in kinds)


METHOD = prune_by_rank
