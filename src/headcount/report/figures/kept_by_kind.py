"""Remaining heads of each kind in models of different sizes (Voita et al. 2019, Figure 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headcount.record import Record
from headcount.record.results.tradeoff import Tradeoff
from headcount.report.canvas import band, panels
from headcount.report.figure import Drawing, Figure, origin
from headcount.report.groups import group_name, grouped
from headcount.report.palette import MARKERS, kind_colour
from headcount.report.points import NONE_FINISHED, shown_way, way_heading
from headcount.statistics import Interval, mean_interval, t_interval


def _draw(records: Sequence[Record]) -> Drawing:
    groups = grouped(records, lambda record: (shown_way(record.parts), tuple(record.parts.of.items())))
    canvas, axes = panels(len(groups), width=4.2, height=3.0, columns=2)
    rows: list[dict[str, Any]] = []
    for group, plot in zip(groups, axes, strict=True):
        way, of = shown_way(group[0].parts), group[0].parts.of
        by_model = [_kept(record, way) for record in group]
        sizes = sorted(set.intersection(*(set(counts) for counts in by_model)))
        for number, kind in enumerate(of):
            is_free = _is_free(group[0].parts, kind)
            left = [
                _mean(
                    [counts[size][kind] for counts in by_model], of[kind], is_free=is_free and size < sum(of.values())
                )
                for size in sizes
            ]
            style: dict[str, Any] = {"color": kind_colour(kind), "marker": MARKERS[number % len(MARKERS)]}
            shares = [Interval(*(100 * end / of[kind] for end in interval)) for interval in left]
            band(plot, sizes, shares, label=kind, **style)
            names = {**origin(group[0]), "model": group_name(group, records), "models": len(group)}
            row = {**names, "way": way, "kind": kind, "of": of[kind]}
            rows += [
                {**row, "left": size, "kept": interval.value, "low": interval.low, "high": interval.high}
                for size, interval in zip(sizes, left, strict=True)
            ]
        plot.set_xticks(sizes, [str(size) for size in sizes])
        plot.set_xlim(max(sizes) + 1, min(sizes) - 1)
        plot.set(xlabel="heads left in all", ylabel="left of its kind (%)", ylim=(0, 105))
        plot.set_title(f"{group_name(group, records)}, {way_heading(group[0].parts, way)}")
        plot.legend()
    several = " Bands: 95% t-intervals over models, each the mean of its seeds." if len(groups) < len(records) else ""
    caption = f"Share of heads left of each kind, against the number of heads left in all.{several}"
    return Drawing(canvas, caption, rows)


def _kept(record: Record[Tradeoff], way: str) -> dict[int, dict[str, float]]:
    """Total remaining heads -> kind -> remaining heads of the kind, mean over seeds; includes the whole model."""
    kept_counts = [record.parts.of, *(point.kept_by_kind for point in record.parts.points if point.way == way)]
    sizes = {sum(counts.values()) for counts in kept_counts}
    return {
        size: {
            kind: float(np.mean([counts.get(kind, 0) for counts in kept_counts if sum(counts.values()) == size]))
            for kind in record.parts.of
        }
        for size in sizes
    }


def _mean(counts: Sequence[float], most: int, *, is_free: bool) -> Interval:
    """The mean over models, between no heads and all of them.

    is_free: whether models could keep another number, so that equal ones may be chance: without the variance of rounded
    numbers, bands of two models left out the truth in 17 to 42% of cases, those of three in 6 to 19%.
    """
    mean = t_interval(counts, grain=1.0) if is_free and len(counts) > 1 else mean_interval(counts)
    return Interval(mean.value, max(mean.low, 0.0), min(mean.high, most))


def _is_free(parts: Tradeoff, kind: str) -> bool:
    """Whether heads of a kind could go, or those of another kind instead: else their number follows from all heads."""
    if parts.pruned == "heads of all kinds":
        return True
    kinds = parts.pruned.removesuffix(" heads").split(" and ")
    return len(kinds) > 1 and kind in kinds


def one_kind(record: Record) -> str | None:
    """The reason against the figure: only one kind lost heads."""
    of = record.parts.of
    lost = {kind for point in record.parts.points for kind in of if point.kept_by_kind.get(kind, 0) < of[kind]}
    return None if len(lost) > 1 or len(of) == 1 else "heads of one kind alone were pruned"


_PARTS = ("points", "of")
FIGURE = Figure("Heads left of each kind", "Voita et al. 2019, Figure 9", _PARTS, _draw, NONE_FINISHED, one_kind)
