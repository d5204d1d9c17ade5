"""Quality against the remaining heads, by each way of choosing them (Voita et al. 2019, Figure 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headcount.record import Record
from headcount.record.results.tradeoff import Point, Tradeoff
from headcount.report.canvas import panels, shared_legend
from headcount.report.figure import Drawing, Figure, metrics, named
from headcount.report.palette import GREY, line_style
from headcount.report.points import NONE_FINISHED, control, mean_quality, point_row, smaller, way_heading


def _draw(records: Sequence[Record]) -> Drawing:
    canvas, axes = panels(len(records), width=4.6, height=3.4, columns=2)
    rows: list[dict[str, Any]] = []
    ways = list(dict.fromkeys(point.way for record in records for point in record.parts.points))
    for record, plot in zip(records, axes, strict=True):
        parts = record.parts
        plot.axhline(parts.whole.value, color=GREY, linewidth=0.8, linestyle="--", label="all heads")
        tuned = control(parts)
        if tuned:
            height = float(np.mean([point.after.value for point in tuned]))
            plot.axhline(height, color=GREY, linewidth=0.8, linestyle="-.", label="all heads, tuned as long")
            rows += [_row(record, point) for point in tuned]
        for number, way in enumerate(ways):
            points = [point for point in smaller(parts) if point.way == way]
            if not points:
                continue
            sizes = sorted({point.keep for point in points})
            means = [mean_quality([point for point in points if point.keep == keep]) for keep in sizes]
            value, low, high = np.transpose(means)
            style: dict[str, Any] = line_style(number)
            style["linestyle"] = "-" if all(point.steps for point in points) else ":"
            apart = [keep + min(0.12, 0.7 / len(ways)) * (number - (len(ways) - 1) / 2) for keep in sizes]
            style["label"] = way_heading(parts, way)
            plot.errorbar(apart, value, yerr=[value - low, high - value], capsize=2, elinewidth=0.7, **style)
            rows += [_row(record, point) for point in points]
        all_sizes = sorted({point.keep for point in smaller(parts)})
        plot.set_xticks(all_sizes, [str(keep) for keep in all_sizes])
        plot.set_xlim(max(all_sizes) + 1, min(all_sizes) - 1)
        title = f"{named(record, records)}, {parts.pruned}"
        plot.set(xlabel=f"heads left of {parts.gated}", ylabel=parts.metric, title=title)
    shared_legend(canvas, axes, 3 * len(axes[:2]))
    shares = [f"{record.parts.distill:g}" for record in records if record.parts.distill is not None]
    weight = f"; distilled: the distillation loss (the whole model's predictions) has a weight of {_each(shares)}"
    tuned_steps = _each([str(record.parts.steps.tuned) for record in records])
    fresh_steps = _each([str(record.parts.steps.scratch) for record in records])
    fresh = f", scratch {fresh_steps}" if "scratch" in ways else ""
    untrained = "; dotted: without training" if not all(row["steps"] for row in rows) else ""
    caption = (
        f"{metrics(records)} against the number of heads left, means over seeds with 95% intervals over "
        f"examples and seeds. Every way that trains has {tuned_steps} training steps"
        f"{fresh}{untrained}{weight if shares else ''}."
    )
    return Drawing(canvas, caption, rows)


def _each(values: Sequence[str]) -> str:
    """In the order of the panels; once if it is the same in all of them."""
    return ", ".join(values if len(set(values)) > 1 else values[:1])


def _row(record: Record[Tradeoff], point: Point) -> dict[str, Any]:
    cut = point.cut.value if point.cut else None
    return {**point_row(record, point, steps=point.steps, cut=cut), **point.kept_by_kind}


FIGURE = Figure("Quality against heads left", "Voita et al. 2019, Figure 7", ("points", "steps"), _draw, NONE_FINISHED)
