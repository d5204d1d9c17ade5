"""Points of a trade-off: models with fewer heads, and apart from them all heads tuned as long, which is the control."""

from __future__ import annotations

from headcount.record.results.prune import SETTLED
from headcount.record.results.tradeoff import Point, Tradeoff

NONE_FINISHED = {"points": "no point of the trade-off is finished yet"}  # why figures of points cannot be drawn


def smaller(parts: Tradeoff) -> list[Point]:
    """Those of smaller models; if there are none, what there is."""
    return [point for point in parts.points if point.keep < parts.gated] or list(parts.points)


def shown_way(parts: Tradeoff) -> str:
    """The way whose models are looked at one by one: l0 where it is, l0/distilled next, or the first."""
    ways = dict.fromkeys(point.way for point in parts.points)
    return next((way for way in sorted(ways, key=len) if way.split("/")[0] == "l0"), next(iter(ways)))


def way_heading(parts: Tradeoff, way: str) -> str:
    """A way for a heading: gates that had not settled when they were cut say so, and after how many steps."""
    settled = [point.gates.settled for point in parts.points if point.way == way and point.gates]
    if not settled or min(settled) >= SETTLED:
        return way
    steps = f"{parts.steps.gates} steps, " if parts.steps.gates else ""
    return f"{way} ({steps}{100 * min(settled):.0f}% settled)"


def control(parts: Tradeoff) -> list[Point]:
    """Those with all heads left, beside smaller ones."""
    points = smaller(parts)
    return [point for point in parts.points if point not in points]
