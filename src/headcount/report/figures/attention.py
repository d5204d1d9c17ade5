"""The attention of one head in one sentence (Voita et al. 2019, Figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.record import Record
from headcount.report.canvas import panels, without_frame
from headcount.report.figure import Drawing, Figure, named, origin


def _draw(records: Sequence[Record]) -> Drawing:
    sizes = [max(len(record.parts.queries), len(record.parts.keys)) for record in records]
    side = max(2.8, 0.21 * max(sizes) + 1.2)
    canvas, axes = panels(len(records), width=side, height=side, columns=2)
    rows: list[dict[str, Any]] = []
    for record, plot in zip(records, axes, strict=True):
        queries, keys, weights = record.parts.queries, record.parts.keys, record.parts.weights
        plot.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
        plot.set_xticks(range(len(keys)), [_plain(key) for key in keys], rotation=90, size=8)
        plot.set_yticks(range(len(queries)), [_plain(query) for query in queries], size=8)
        plot.xaxis.tick_top()
        without_frame(plot)
        plot.set_xticks([x - 0.5 for x in range(1, len(keys))], minor=True)
        plot.set_yticks([y - 0.5 for y in range(1, len(queries))], minor=True)
        plot.grid(which="minor", color="#EDEDED", linewidth=0.5)
        plot.tick_params(which="minor", length=0)
        plot.set_xlabel(f"{named(record, records)} {record.parts.head}")
        rows += [
            {**origin(record), "head": record.parts.head, "query": query, "key": key, "weight": weight}
            for query, row in zip(queries, weights, strict=True)
            for key, weight in zip(keys, row, strict=True)
        ]
    caption = "Attention weights: rows are queries, columns are keys; white is 0, dark blue is 1."
    return Drawing(canvas, caption, rows)


def _plain(token: str) -> str:
    """Escape dollar signs, which matplotlib reads as formulas."""
    return token.replace("$", r"\$")


FIGURE = Figure("Attention of one head", "Voita et al. 2019, Figure 5", ("queries", "keys", "weights"), _draw)
