"""Points of a trade-off: models with fewer heads, and the control: all heads, tuned as long."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from headcount.record import Record
from headcount.record.results.prune import SETTLED
from headcount.record.results.tradeoff import Point, StepsOfWays, Tradeoff
from headcount.report.figure import judged
from headcount.statistics import Interval, over_models

SCRATCH = "scratch"  # the way from random weights
ENDS = {  # the lowest and highest value that a metric can have, by its name in records
    "BLEU": (0.0, 100.0), "accuracy": (0.0, 1.0), "token accuracy": (0.0, 1.0), "F1": (0.0, 1.0),
    "Matthews": (-1.0, 1.0), "cosine distance": (0.0, 2.0), "perplexity": (1.0, inf),
}  # fmt: skip
NONE_FINISHED = {"points": "no point of the trade-off is finished yet"}  # why figures of points cannot be drawn


def smaller(parts: Tradeoff) -> list[Point]:
    """The points of pruned models; all points if there are none."""
    return [point for point in parts.points if point.keep < parts.gated] or list(parts.points)


def pruned_heads(parts: Tradeoff) -> str:
    """The heads that the numbers of a point count, in words: `heads`, or those of one kind alone."""
    return "heads" if parts.pruned == "heads of all kinds" else parts.pruned


def shown_way(parts: Tradeoff) -> str:
    """The way whose models are shown one by one: l0 if present, else l0/distilled, else the first."""
    ways = dict.fromkeys(point.way for point in parts.points)
    return next((way for way in sorted(ways, key=len) if way.split("/")[0] == "l0"), next(iter(ways)))


def scratch_steps(steps: StepsOfWays) -> str:
    """Training steps from scratch and of the whole model; only equally many are a fair comparison."""
    return f"{steps.scratch} steps" if steps.whole is None else f"{steps.scratch} of the model's {steps.whole} steps"


def way_heading(parts: Tradeoff, way: str) -> str:
    """The name of a way for a heading, with a note if its gates had not settled, or on the steps from scratch."""
    if way == SCRATCH:
        return f"{way} ({scratch_steps(parts.steps)})"
    settled = [point.gates.settled for point in parts.points if point.way == way and point.gates]
    if not settled or min(settled) >= SETTLED:
        return way
    steps = f"{parts.steps.gates} steps, " if parts.steps.gates else ""
    return f"{way} ({steps}{100 * min(settled):.0f}% settled)"


def point_row(record: Record[Tradeoff], point: Point, **columns: object) -> dict[str, object]:
    """A row of a figure's data; columns: between the name of the point and its quality."""
    names = {**judged(record), "way": point.way, "keep": point.keep, "seed": point.seed}
    return {**names, **columns, "value": point.after.value, "low": point.after.low, "high": point.after.high}


def control(parts: Tradeoff) -> list[Point]:
    """The points with all heads, if there are smaller ones."""
    points = smaller(parts)
    return [point for point in parts.points if point not in points]


def mean_quality(points: Sequence[Point]) -> Interval:
    """The mean over seeds, with a 95% interval over seeds and examples within what the metric can be."""
    value, low, high = over_models([Interval(point.after.value, point.after.low, point.after.high) for point in points])
    lowest, highest = ENDS.get(points[0].after.metric, (-inf, inf))
    return Interval(value, float(np.maximum(low, min(lowest, value))), float(np.minimum(high, max(highest, value))))
