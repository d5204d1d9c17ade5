"""How much faster a smaller model is, at each batch size and length (Michel et al. 2019, Table 4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.bench import Speed, Timing
from headcount.report.canvas import panels, shared_legend
from headcount.report.figure import Drawing, Figure, each, origin, picked, short_names
from headcount.report.palette import INK, line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Key = tuple[str, str, int]  # model that a speed is relative to, device, threads


def _draw(records: Sequence[Record]) -> Drawing:
    comparable = _comparable(records)
    names = short_names(name for record in records for name in record.parts.models)
    rows_by_setting = {
        key: [row for parts in group for row in parts.others or parts.rows] for key, group in comparable.items()
    }
    settings = list(dict.fromkeys((key, row.what, row.length) for key, rows in rows_by_setting.items() for row in rows))
    canvas, axes = panels(len(settings), width=3.2, height=2.7, columns=4)
    models = list(dict.fromkeys(row.model for rows in rows_by_setting.values() for row in rows))
    styles: dict[str, dict[str, Any]] = {
        model: {"label": names[model], **line_style(number)} for number, model in enumerate(models)
    }
    for (key, what, length), plot in zip(settings, axes, strict=True):
        _lines(plot, [row for row in rows_by_setting[key] if (row.what, row.length) == (what, length)], styles)
        title = f"{what}, {length} tokens"
        plot.set(title=f"{title}, {_against(key, comparable, names)}" if len(comparable) > 1 else title)
    shared_legend(canvas, axes, 2 * min(len(axes), 4))
    references = each(reference for reference, *_ in comparable)
    caption = f"Speed relative to {references} (dashed): median of paired, interleaved repeats with its 95% interval."
    if any(not math.isfinite(row.high) for rows in rows_by_setting.values() for row in rows):
        caption += " Points without a bar have too few repeats for an interval."
    keys = ("model", "what", "batch", "length", "seconds", "per_second", "faster", "low", "high")
    rows = [
        {**origin(record), **picked(row, *keys), "relative_to": record.parts.reference}
        for record in records
        for row in record.parts.rows
    ]
    return Drawing(canvas, caption, rows)


def _comparable(records: Sequence[Record[Speed]]) -> dict[_Key, list[Speed]]:
    """Results whose ratios can be compared: relative to the same model, on the same device."""
    groups: dict[_Key, list[Speed]] = {}
    for record in records:
        parts = record.parts
        groups.setdefault((parts.reference, parts.device, parts.threads), []).append(parts)
    return groups


def _against(key: _Key, keys: Iterable[_Key], names: Mapping[str, str]) -> str:
    """What a panel is relative to, and the device if others are relative to the same model."""
    reference, device, threads = key
    alone = sum(other == reference for other, *_ in keys) == 1
    return f"against {names[reference]}" + ("" if alone else f", {device}, {plural(threads, 'thread')}")


def _lines(plot: Axes, rows: Sequence[Timing], styles: Mapping[str, Mapping[str, Any]]) -> None:
    """A line for each model, with a place for each batch size."""
    batches = sorted({row.batch for row in rows})
    for number, model in enumerate(dict.fromkeys(row.model for row in rows)):
        points = sorted((row for row in rows if row.model == model), key=lambda row: row.batch)
        value = [row.faster for row in points]
        error = [[row.faster - row.low for row in points], [row.high - row.faster for row in points]]
        places = [batches.index(row.batch) + 0.08 * number for row in points]
        plot.errorbar(places, value, yerr=error, capsize=3, **styles[model])
    plot.set_xticks(range(len(batches)), [str(batch) for batch in batches])
    plot.axhline(1, color=INK, linewidth=0.8, linestyle="--")
    plot.set(xlabel="batch size", ylabel="times as fast")


FIGURE = Figure("Speed after removal", "Michel et al. 2019, Table 4", ("rows", "models"), _draw)
