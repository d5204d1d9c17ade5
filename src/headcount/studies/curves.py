"""Pruning curves (Michel et al. 2019, section 4): quality as heads are removed in several orders, of all kinds or one.

Controls: several random orders, and on request the order of single ablations.
Shapes: K random orders, N examples, C columns of statistics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import permutations
from math import ceil, floor
from pathlib import Path

import numpy as np
from torch import nn

from headcount import processes
from headcount.checkpoints.chosen_on import read_chosen_on
from headcount.errors import UsageError
from headcount.heads import HeadGrid
from headcount.journal import Shelf
from headcount.progress import Progress, named, silent
from headcount.pruning.ranking import Order, Restrictions, Step, counts_to, curve
from headcount.record import Record, Signature
from headcount.record.results.curves import Curve, Curves, Gain, Lead
from headcount.scores.pieces import shelf
from headcount.scores.score import WITHOUT_TEXT, members, options_of, score
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import (
    Interval,
    Runs,
    bootstrap_interval,
    bootstrap_sums,
    counted,
    curve_weights,
    influences,
    over_runs,
)
from headcount.tasks.overlap import measured_on
from headcount.tasks.quality import Quality
from headcount.tasks.task import Task

_STORED = ("removed", "masks", "statistics", "tied")  # of the steps of a curve


@dataclass(frozen=True)
class CurvePlan:
    """Settings of the curves."""

    orders: tuple[str, ...] = ("gradient", "ablation")
    random: int = 5  # random orders
    step: float = 0.1  # share of heads to remove at a time
    upto: float = 1.0  # share of removed heads at the end
    by_kind: bool = True  # also each kind alone, by the first order
    recompute: bool = False  # score again after each step

    def __post_init__(self) -> None:
        for order in self.orders:
            members[order]  # raises for an unknown name
        if "random" in self.orders:  # curves of this name are the control, all of the same heads
            raise UsageError("Random orders are the control: give their number as random (--random), not as an order.")
        if not self.orders or self.random < 0 or not 0 < self.upto <= 1:
            raise UsageError(
                "A plan needs at least one order, random of 0 or more, and upto above 0 and at most 1; "
                f"got {len(self.orders)} orders, random {self.random}, upto {self.upto}."
            )


@dataclass(frozen=True)
class _Line:
    """One curve with the quality of every step."""

    order: str
    kinds: tuple[str, ...]
    steps: list[Step]
    seed: int | None = None

    def result(self) -> Curve:
        points = tuple(step.to_result(self.kinds, self.steps[0].quality) for step in self.steps)
        return Curve(self.order, self.kinds, self.seed, points)


def pruning_curves(
    model: nn.Module,
    task: Task,
    *,
    measure_on: Task | None = None,
    plan: CurvePlan | None = None,
    name: str = "",
    revision: str | None = None,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Record[Curves]:
    """Scores are computed on `task`, quality on `measure_on`. By default on `task` too, which the record states.

    name, revision: of the model, whose folder or hub id says what its heads were chosen on if it is pruned.
    folder: for unfinished work, from which the same call resumes: finished scores and curves.
    """
    plan, measured = plan or CurvePlan(), measure_on or task
    kinds = tuple(locate(model).kinds)
    finished = shelf(folder / "finished" if folder else None, model, task, _identity(model, task, measured, plan))
    lines = list(_lines(model, task, measured, plan, kinds, folder, finished, progress))
    quality = lines[0].steps[0].quality
    by_kind = tuple(line.result() for line in lines if line.kinds != kinds)
    against_random = _against_random(lines, kinds)
    scored_on = [task] if set(plan.orders).difference(WITHOUT_TEXT) else []
    parts = Curves(
        metric=quality.metric.name,
        higher_is_better=quality.metric.higher_is_better,
        value=quality.value,
        measured_on=measured_on([*read_chosen_on(name, revision), *scored_on], measured),
        num_heads=len(locate(model).heads),
        curves=tuple(line.result() for line in lines if line.kinds == kinds),
        against_random=against_random,
        leads=tuple(_leads(lines, kinds)),
        by_kind=by_kind if plan.by_kind and len(kinds) > 1 else None,
    )
    arguments = {"orders": list(plan.orders), "step": plan.step, "recompute": plan.recompute, "random": plan.random}
    arguments |= {"measured_on": measured.fingerprint}
    signature = Signature(name, weight_hash(model), task.fingerprint, arguments=arguments)
    return Record("curves", signature, parts)


def _identity(model: nn.Module, task: Task, measured: Task, plan: CurvePlan) -> dict[str, object]:
    """Settings that finished curves depend on."""
    measuring = {"data": measured.fingerprint, "metric": measured.metric.name, **measured.identity}
    return {"weights": weight_hash(model), "data": task.fingerprint, "measured": measuring, "plan": asdict(plan)}


def _finished_by_all(finished: Shelf, name: str) -> dict[str, np.ndarray] | None:
    """Finished arrays, if every process has them: those that compute scores wait for each other."""
    arrays = finished.get(name)
    return arrays if all(processes.gather(arrays is not None)) else None


@dataclass(frozen=True)
class _KeptOrder(Order):
    """An order whose scores are kept until all curves are finished; those that are computed again are not."""

    folder: Path | None = None
    finished: Shelf | None = None

    def scores(self, model: nn.Module, task: Task) -> HeadGrid:
        if self.finished is None or self.recompute or self.options:
            return super().scores(model, task)
        name = f"scores-{self.score}"
        earlier = _finished_by_all(self.finished, name)
        if earlier is None:
            pieces = {"folder": self.folder / self.score if self.folder else None}
            options = pieces if "folder" in options_of(self.score) else {}
            earlier = {"scores": np.asarray(score(self.score, model, task, **options).numbers())}
            self.finished.put(name, earlier)
        return HeadGrid(list(zip(locate(model).heads, earlier["scores"].tolist(), strict=True)))


def _kept_steps(name: str, model: nn.Module, measured: Task, finished: Shelf | None) -> list[Step] | None:
    """The steps of a curve that was finished before an interruption."""
    stored = _finished_by_all(finished, name) if finished else None
    if stored is None:
        return None
    heads, steps = locate(model).heads, []
    for removed, mask_H, statistics, tied in zip(*(stored[key] for key in _STORED), strict=True):
        mask = HeadGrid(list(zip(heads, mask_H.tolist(), strict=True)))
        signature = Signature(data=measured.fingerprint, arguments={"metric": measured.metric.name})
        steps.append(Step(int(removed), mask, Quality.of(measured.metric, statistics, signature), int(tied)))
    return steps


def _keep_steps(name: str, steps: Sequence[Step], finished: Shelf | None) -> None:
    if finished is not None:
        rows = ((step.removed, step.mask.numbers(), step.quality.statistics, step.tied) for step in steps)
        finished.put(name, dict(zip(_STORED, map(np.array, zip(*rows, strict=True)), strict=True)))


def _lines(
    model: nn.Module,
    task: Task,
    measured: Task,
    plan: CurvePlan,
    kinds: tuple[str, ...],
    folder: Path | None,
    finished: Shelf | None,
    progress: Progress,
) -> Iterator[_Line]:
    totals = Counter(head.kind for head in locate(model).heads)
    fewest = min(totals.values())
    knots = counts_to(fewest, round(plan.upto * fewest), plan.step)

    def line(order: Order, removable_kinds: tuple[str, ...], seed: int | None = None) -> _Line:
        total = sum(totals[kind] for kind in removable_kinds)
        counts = counts_to(total, round(plan.upto * total), plan.step)
        if removable_kinds != kinds:  # kinds are compared at the shares that the smallest one has
            exact = [Fraction(knot * total, fewest) for knot in knots]
            counts = sorted({*counts, *map(floor, exact), *map(ceil, exact)})
        name = " ".join(
            [
                order.score,
                *(removable_kinds if removable_kinds != kinds else ()),
                *([] if seed is None else [f"#{seed + 1}"]),
            ]
        )
        steps = _kept_steps(name, model, measured, finished)
        if steps is None:
            running = curve(
                model, task, order, counts, measure_on=measured, restrictions=Restrictions(removable_kinds),
                progress=named(f"pruning by {name}", progress),
            )  # fmt: skip
            steps = list(running)
            _keep_steps(name, steps, finished)
        return _Line(order.score, removable_kinds, steps, seed)

    def by_score(score_name: str) -> Order:
        return _KeptOrder(score_name, plan.recompute, folder=folder, finished=finished)

    for name in plan.orders:
        yield line(by_score(name), kinds)
    for seed in range(plan.random):
        yield line(Order("random", options=(("seed", seed),)), kinds, seed)
    if plan.by_kind and len(kinds) > 1:
        for kind in kinds:
            yield line(by_score(plan.orders[0]), (kind,))


def _against_random(lines: Sequence[_Line], kinds: tuple[str, ...]) -> dict[str, tuple[Gain, ...]]:
    """Gain of each order over the mean of the random orders after each step; empty without random orders."""
    random = [line for line in lines if line.order == "random"]
    if not random:
        return {}
    named = [line for line in lines if line.order != "random" and line.kinds == kinds]
    return {line.order: tuple(_gain(line, random, index) for index in range(len(line.steps))) for line in named}


def _gain(line: _Line, random: Sequence[_Line], index: int) -> Gain:
    """The mean gain over random orders, with an interval over orders and examples."""
    ours = line.steps[index]
    theirs = [other.steps[index].quality for other in random]
    gain = gain_over([[ours.quality], *([quality] for quality in theirs)])
    beaten = sum(ours.quality.metric.gain(ours.quality.value - quality.value) > 0 for quality in theirs)
    share = ours.removed / len(ours.mask)
    return Gain(share, gain.value, gain.low, gain.high, beaten, len(theirs), variance=gain.parts)


def gain_over(lines: Sequence[Sequence[Quality]]) -> Runs:
    """Gain of the first line over the others, each a mean over its steps, with the others as seeds."""
    metric = lines[0][0].metric
    sign = 1 if metric.higher_is_better else -1
    table = np.stack([[quality.statistics for quality in line] for line in lines])  # [1 + K, steps, N, C]
    table = counted(table.transpose(2, 0, 1, 3))

    def gains(sums: np.ndarray) -> np.ndarray:
        """[..., 1 + K, steps, C] -> [..., K], positive if the first is better."""
        values = metric.of_sums(sums).mean(-1)
        return np.asarray(sign * (values[..., :1] - values[..., 1:]))

    drawn_RK = np.concatenate([gains(sums) for sums in bootstrap_sums(table, resamples=1000)])
    influence_N = influences(table, lambda sums: gains(sums).mean(-1))
    values = gains(table.sum(0)).tolist()
    runs = over_runs([values], [list(drawn_RK.T)], examples=len(table), influence=influence_N)
    return metric.possible_change(runs)


_MIDDLE = (0.15, 0.65)  # shares of removed heads: where orders differ
_BEYOND = (0.6, 1.0)  # and where kinds do (Michel et al. 2019, section 5)


def _leads(lines: Sequence[_Line], kinds: tuple[str, ...]) -> Iterator[Lead]:
    """Leads of each order over every other and over the random ones, and of each kind alone over every other."""
    orders = [line for line in lines if line.kinds == kinds and line.order != "random"]
    alone = [line for line in lines if line.kinds != kinds]
    by_order, by_kind = {line.order: line for line in orders}, {line.kinds[0]: line for line in alone}
    for name, baseline in permutations(by_order, 2):
        steps, baseline_steps = (_between(by_order[order], *_MIDDLE) for order in (name, baseline))
        if steps and baseline_steps:
            yield Lead(name, baseline, *_MIDDLE, *lead(steps, baseline_steps))
    shares = {kind: _shares(line) for kind, line in by_kind.items()}
    knots = min(shares.values(), key=len, default=[])  # of the kind with the fewest heads, for all
    start, end = _BEYOND[0], min([_BEYOND[1], *(positions[-1] for positions in shares.values())])
    for name, baseline in permutations(by_kind, 2) if end > start else ():
        steps, baseline_steps = ([step.quality for step in by_kind[kind].steps] for kind in (name, baseline))
        weights = [curve_weights(shares[kind], start, end, knots=knots) for kind in (name, baseline)]
        yield Lead(name, baseline, start, end, *lead(steps, baseline_steps, weights=weights))
    random = [_between(line, *_MIDDLE) for line in lines if line.order == "random"]
    for name, line in by_order.items():
        if random and (steps_of_line := _between(line, *_MIDDLE)):
            gain = gain_over([steps_of_line, *random])
            yield Lead(name, "random", *_MIDDLE, gain.value, gain.low, gain.high, gain.parts)


def _shares(line: _Line) -> list[float]:
    """Of removed heads after each step."""
    total = sum(head.kind in line.kinds for head in line.steps[0].mask.heads)
    return [step.removed / total for step in line.steps]


def _between(line: _Line, start: float, end: float) -> list[Quality]:
    """The steps whose share of removed heads is within these bounds."""
    steps = zip(line.steps, _shares(line), strict=True)
    return [step.quality for step, share in steps if start - 1e-9 <= share <= end + 1e-9]


def lead(
    qualities: Sequence[Quality], baseline: Sequence[Quality], *, weights: Sequence[np.ndarray] | None = None
) -> Interval:
    """Mean lead of these qualities over the baseline on the same examples; positive if they are better.

    weights: of the steps of both in their means; by default all are equal.
    """
    metric = qualities[0].metric
    table = np.stack([quality.statistics for quality in (*qualities, *baseline)], axis=1)  # [N, steps of both, C]
    step_weights, baseline_weights = weights or [np.full(len(steps), 1 / len(steps)) for steps in (qualities, baseline)]

    def gain(sums: np.ndarray) -> np.ndarray:
        """[..., steps of both, C] -> [...]."""
        values = metric.of_sums(sums)
        difference = values[..., : len(qualities)] @ step_weights - values[..., len(qualities) :] @ baseline_weights
        return np.asarray(difference if metric.higher_is_better else -difference)

    return bootstrap_interval(table, gain)
