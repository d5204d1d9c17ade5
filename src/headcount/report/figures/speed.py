"""How much faster a smaller model is, at each batch size and length (Michel et al. 2019, Table 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.record import Record
from headcount.record.results.bench import Timing
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure
from headcount.report.palette import INK, LINES, MARKERS


def _draw(records: Sequence[Record]) -> Drawing:
    rows = [row for record in records for row in record.parts.rows]
    base = rows[0].model
    smaller_rows = [row for row in rows if row.model != base] or rows
    settings = list(dict.fromkeys((row.what, row.length) for row in smaller_rows))
    canvas, axes = panels(len(settings), width=3.2, height=2.7, columns=4)
    for (what, length), plot in zip(settings, axes, strict=True):
        panel_rows = [row for row in smaller_rows if (row.what, row.length) == (what, length)]
        for number, name in enumerate(dict.fromkeys(row.model for row in panel_rows)):
            model_rows: list[Timing] = [row for row in panel_rows if row.model == name]
            value = [row.faster for row in model_rows]
            error = [
                [v - row.low for v, row in zip(value, model_rows, strict=True)],
                [row.high - v for v, row in zip(value, model_rows, strict=True)],
            ]
            places = [x + 0.08 * number for x in range(len(model_rows))]
            label = name.rstrip("/").rpartition("/")[2]
            style: dict[str, Any] = {"color": LINES[number], "marker": MARKERS[number], "capsize": 3, "label": label}
            plot.errorbar(places, value, yerr=error, **style)
            plot.set_xticks(range(len(model_rows)), [str(row.batch) for row in model_rows])
        plot.axhline(1, color=INK, linewidth=0.8, linestyle="--")
        plot.set_title(f"{what}, {length} tokens")
        plot.set_xlabel("batch size")
        plot.set_ylabel("times as fast")
    axes[0].legend()
    caption = f"Speed relative to {base} (dashed): median of paired, interleaved repeats with its 95% interval."
    keys = ("model", "what", "batch", "length", "seconds", "per_second", "faster", "low", "high")
    return Drawing(canvas, caption, [{key: getattr(row, key) for key in keys} for row in rows])


FIGURE = Figure("Speed after removal", "Michel et al. 2019, Table 4", ("rows", "models"), _draw)
