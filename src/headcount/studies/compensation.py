"""Compensation study: the loss without heads, and how much of it each compensation restores without training.

All compensations are fitted on one set of data under the same masks, in the order of one score; greedy search has its
own masks. The loss is the negative log-likelihood of held-out examples minus that of the full model, paired by example.
Shapes: N examples, B resamples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from headcount.checkpoints.chosen_on import read_chosen_on
from headcount.heads import HeadGrid
from headcount.metrics import LOSS, Metric
from headcount.probes.projections import Projection, projected
from headcount.progress import Progress, silent
from headcount.pruning.choosers.greedy import CANDIDATES
from headcount.pruning.ranking import counts_to, untied
from headcount.pruning.run import measured_quality
from headcount.pruning.search import Search
from headcount.record import Record, Signature
from headcount.record.results.compensation import CompensationCurves, CoursePoint, ExcessPoint, Reached, Whole
from headcount.scores.score import score
from headcount.selection.budget import Budget
from headcount.selection.select import select
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import SiteKey
from headcount.statistics import Interval, bootstrap_interval, ratio_interval
from headcount.surgery.compensate import compensate
from headcount.tasks.batch import Batch
from headcount.tasks.overlap import measured_on
from headcount.tasks.quality import Quality
from headcount.tasks.task import Task

METHODS = ("none", "bias", "scale", "lstsq")


@dataclass(frozen=True)
class CurvePoint:
    """A model pruned in one way; a curve has increasing numbers of removed heads."""

    removed: int
    loss_N: np.ndarray
    seconds: float  # of pruning, without measuring
    projections: Mapping[SiteKey, Projection]
    mask: HeadGrid


Curve = list[CurvePoint]


@dataclass(frozen=True)
class GreedySteps:
    """Settings of one step of greedy search."""

    candidates: int = CANDIDATES
    group: int = 1  # heads to remove in one step


GREEDY_STEPS = GreedySteps()


def study_compensation(
    model: nn.Module,
    task: Task,
    measure_on: Task,
    *,
    name: str = "",
    revision: str | None = None,
    order: str = "gradient",
    step: float = 0.05,
    most: float = 0.6,
    points: float | None = None,
    greedy: GreedySteps | None = GREEDY_STEPS,
    add_bias: bool = False,
    progress: Progress = silent,
) -> Record[CompensationCurves]:
    """Curves of every compensation under the same masks, and of greedy search.

    name, revision: of the model, whose folder or hub id says what its heads were chosen on if it is pruned.
    task: data to score, search and calibrate on. measure_on: held-out data.
    step, most: share of heads between points, and of removed heads at the end. points: loss of the metric at which ways
    are compared. By default 2, or .02 for a metric between 0 and 1. greedy: None skips greedy search.
    """
    heads = locate(model).heads
    counts = [count for count in counts_to(len(heads), round(most * len(heads)), step) if count]
    full_N, quality = losses(model, measure_on, {}), measure_on.quality(model)
    biased = all(site.output.bias is not None for site in locate(model))
    methods = [way for way in METHODS if way != "bias" or add_bias or biased]
    curves: dict[str, Curve] = {way: [] for way in methods}
    scores, spent = _timed(lambda: untied(score(order, model, task), model))
    for number, count in enumerate(counts, start=1):
        mask = select(scores, Budget(heads=len(heads) - count))
        for way in methods:
            compensation, seconds = _timed(partial(compensate, model, mask, task, way, add_bias=add_bias))
            loss_N = losses(model, measure_on, compensation.projections)
            cost = spent + (seconds if way != "none" else 0.0)  # without compensation no data is used
            curves[way].append(CurvePoint(count, loss_N, cost, dict(compensation.projections), mask))
        progress("compensating under the same masks", number, len(counts))
    if greedy:
        curves["greedy"] = _greedily(model, task, measure_on, counts, greedy, add_bias, progress)
    reach = points if points is not None else 2 * quality.metric.point
    course, at = _at(model, measure_on, curves, full_N, quality, reach)
    parts = CompensationCurves(
        metric=quality.metric.name,
        num_heads=len(heads),
        order=order,
        measured_on=measured_on([*read_chosen_on(name, revision), task], measure_on),
        full=Whole(float(full_N.mean()), measured_quality(quality)),
        compensations={way: _points(curve, full_N, len(heads)) for way, curve in curves.items()},
        course=course,
        at=at,
    )
    arguments = {
        "order": order, "step": step, "most": most, "points": reach, "add_bias": add_bias,
        "calibration": task.fingerprint, **asdict(greedy or GREEDY_STEPS),
    }  # fmt: skip
    return Record(
        "compensation", Signature(name, weight_hash(model), measure_on.fingerprint, arguments=arguments), parts
    )


def losses(model: nn.Module, task: Task, projections: Mapping[SiteKey, Projection]) -> np.ndarray:
    """[N]: the negative log-likelihood of each example with a prediction, in the order of the task's batches."""
    with evaluating(model), projected(model, projections):
        return np.concatenate(
            [task.nll(model, batch).double().cpu().numpy()[_counts(task, batch)] for batch in task.batches()]
        )


def _counts(task: Task, batch: Batch) -> np.ndarray | slice:
    """Which examples count: a text of one token is none, as it has no loss to add."""
    return task.predicted(batch).any(-1).cpu().numpy() if task.predicts else slice(None)


def ratio(above_N: np.ndarray, below_N: np.ndarray, *, resamples: int = 2000) -> Interval:
    """Ratio of sums of paired values, with its 95% bootstrap interval over examples."""
    return ratio_interval(np.stack([above_N, below_N], axis=1), lambda sums: sums, resamples=resamples)


def excess_loss(loss_N: np.ndarray, full_N: np.ndarray) -> Interval:
    """Mean of how much larger losses are than those of the full model; a few examples may have most of it."""
    table = np.stack([loss_N - full_N, np.ones_like(full_N)], axis=1)
    return bootstrap_interval(table, LOSS.of_sums, resamples=2000)


def _greedily(
    model: nn.Module,
    task: Task,
    measure_on: Task,
    counts: Sequence[int],
    steps: GreedySteps,
    add_bias: bool,
    progress: Progress,
) -> Curve:
    """Greedy search with lstsq in the loop, measured at the points of the other curves."""
    search, curve = Search(model, task, candidates=steps.candidates, add_bias=add_bias), list[CurvePoint]()
    sizes, at = [], 0
    for count in counts:  # groups end at the points
        while at < count:
            sizes.append(min(steps.group, count - at))
            at += sizes[-1]
    gone, spent, start = 0, 0.0, time.perf_counter()
    for step in search.steps(sizes):
        gone += len(step.heads)
        progress("taking heads away", gone, counts[-1])
        if gone in counts:
            spent += time.perf_counter() - start
            compensation, seconds = _timed(lambda: compensate(model, search.mask, task, "lstsq", add_bias=add_bias))
            loss_N = losses(model, measure_on, compensation.projections)
            curve.append(CurvePoint(gone, loss_N, spent + seconds, dict(compensation.projections), search.mask))
            start = time.perf_counter()
    return curve


def _points(curve: Curve, full_N: np.ndarray, heads: int) -> tuple[ExcessPoint, ...]:
    """Excess loss of an example at every point, with its 95% interval over examples."""
    points = []
    for point in curve:
        excess = excess_loss(point.loss_N, full_N)
        removed_heads = tuple(str(head) for head in point.mask.heads if not point.mask[head])
        points.append(ExcessPoint(point.removed, point.removed / heads, *excess, point.seconds, removed_heads))
    return tuple(points)


def _at(
    model: nn.Module, task: Task, curves: dict[str, Curve], full_N: np.ndarray, full_quality: Quality, points: float
) -> tuple[tuple[CoursePoint, ...], Reached | None]:
    """The quality of `none` until it first loses this many points of the metric; the quality of all ways there, and
    their shares of its excess loss."""
    metric: Metric = full_quality.metric
    course = []
    for point in curves["none"]:
        value = _quality(model, task, point)
        course.append(CoursePoint(point.removed, measured_quality(value)))
        if -metric.gain(value.value - full_quality.value) >= points:
            break
    else:
        return tuple(course), None
    index = len(course) - 1
    excess = {way: curve[index].loss_N - full_N for way, curve in curves.items() if len(curve) > index}
    below = {"lstsq": "none", "scale": "none", "bias": "none", "greedy": "lstsq"}
    ratios = {f"{way}/{other}": ratio(excess[way], excess[other]) for way, other in below.items() if way in excess}
    quality = {way: measured_quality(_quality(model, task, curves[way][index])) for way in excess}
    return tuple(course), Reached(course[-1].removed, quality, ratios)


def _quality(model: nn.Module, task: Task, point: CurvePoint) -> Quality:
    with projected(model, point.projections):
        return task.quality(model)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start
