"""Quality against the seconds that each way of pruning takes, for each number of remaining heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headcount.record import Record
from headcount.record.codec import encode
from headcount.report.canvas import panels, shared_legend
from headcount.report.figure import Drawing, Figure, metrics, named
from headcount.report.palette import GREY, line_style
from headcount.report.points import NONE_FINISHED, mean_quality, point_row, pruned_heads, smaller


def _draw(records: Sequence[Record]) -> Drawing:
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    record_sizes = [(record, keep) for record in records for keep in _sizes(record)]
    canvas, axes = panels(len(record_sizes), width=3.3, height=2.8, columns=3)
    ways = list(dict.fromkeys(point.way for record in records for point in record.parts.points))
    rows: list[dict[str, Any]] = []
    for plot, (record, keep) in zip(axes, record_sizes, strict=True):
        parts = record.parts
        plot.axhline(parts.whole.value, color=GREY, linewidth=0.8, linestyle="--", label="all heads")
        for number, way in enumerate(ways):
            points = [point for point in smaller(record.parts) if (point.way, point.keep) == (way, keep)]
            if not points:
                continue
            seconds = float(np.mean([point.seconds.total for point in points]))
            value, low, high = mean_quality(points)
            style: dict[str, Any] = line_style(number)
            error = [[value - low], [high - value]]
            plot.errorbar([seconds], [value], yerr=error, linestyle="", capsize=2, elinewidth=0.7, label=way, **style)
            rows += [point_row(record, point, **encode(point.seconds)) for point in points]
        plot.set_xscale("log")
        low, high = plot.get_xlim()
        plot.set_xlim(min(low, 0.5 * high), max(high, 2.0 * low))  # ways of similar duration are side by side
        plot.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        plot.xaxis.set_major_formatter(ScalarFormatter())
        plot.xaxis.set_minor_formatter(NullFormatter())
        plot.set(xlabel="seconds", ylabel=parts.metric)
        left = f"{keep} of {parts.gated} {pruned_heads(parts)} left"
        plot.set_title(left if len(records) == 1 else f"{named(record, records)}\n{left}")
    shared_legend(canvas, axes, 6)
    caption = (
        f"{metrics(records)} against the seconds that a way takes for one model: choosing heads, "
        "compensation and training, on the same machine, without evaluation. Means over seeds, with 95% intervals "
        "over examples and seeds."
    )
    return Drawing(canvas, caption, rows)


def _sizes(record: Record) -> list[int]:
    return sorted({point.keep for point in smaller(record.parts)}, reverse=True)


_PARTS = ("points", "seconds_by_way", "whole")
FIGURE = Figure("Quality against seconds spent", "Beyond the papers", _PARTS, _draw, NONE_FINISHED)
