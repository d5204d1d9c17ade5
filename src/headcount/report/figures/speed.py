"""How much faster a smaller model is, at each batch size and length (Michel et al. 2019, Table 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.record import Record
from headcount.record.results.bench import Timing
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, picked, short_name
from headcount.report.palette import INK, line_style


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
            error = [[row.faster - row.low for row in model_rows], [row.high - row.faster for row in model_rows]]
            places = [x + 0.08 * number for x in range(len(model_rows))]
            style: dict[str, Any] = line_style(number)
            plot.errorbar(places, value, yerr=error, capsize=3, label=short_name(name), **style)
            plot.set_xticks(range(len(model_rows)), [str(row.batch) for row in model_rows])
        plot.axhline(1, color=INK, linewidth=0.8, linestyle="--")
        plot.set(title=f"{what}, {length} tokens", xlabel="batch size", ylabel="times as fast")
    axes[0].legend()
    caption = f"Speed relative to {base} (dashed): median of paired, interleaved repeats with its 95% interval."
    keys = ("model", "what", "batch", "length", "seconds", "per_second", "faster", "low", "high")
    return Drawing(canvas, caption, [picked(row, *keys) for row in rows])


FIGURE = Figure("Speed after removal", "Michel et al. 2019, Table 4", ("rows", "models"), _draw)
