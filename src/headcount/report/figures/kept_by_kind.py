"""How many heads of each kind are left in models of different sizes (Voita et al. 2019, Figure 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headcount.record import Record
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, named
from headcount.report.palette import MARKERS, kind_colour
from headcount.report.points import shown_way


def _draw(records: Sequence[Record]) -> Drawing:
    canvas, axes = panels(len(records), width=4.2, height=3.0, columns=2)
    rows: list[dict[str, Any]] = []
    for record, plot in zip(records, axes, strict=True):
        way, of = shown_way(record.parts), record.parts.of
        kept_counts = [
            of,
            *(point.kept_by_kind for point in record.parts.points if point.way == way),
        ]  # the whole model first
        sizes = sorted({sum(counts.values()) for counts in kept_counts})
        for number, kind in enumerate(of):
            left = [
                float(np.mean([counts.get(kind, 0) for counts in kept_counts if sum(counts.values()) == size]))
                for size in sizes
            ]
            style: dict[str, Any] = {"color": kind_colour(kind), "marker": MARKERS[number % len(MARKERS)]}
            plot.plot(sizes, [100 * value / of[kind] for value in left], label=kind, **style)
            named_way = {"model": record.signature.model, "way": way, "kind": kind, "of": of[kind]}
            rows += [{**named_way, "left": size, "kept": value} for size, value in zip(sizes, left, strict=True)]
        plot.set_xticks(sizes, [str(size) for size in sizes])
        plot.set_xlim(max(sizes) + 1, min(sizes) - 1)
        plot.set_ylim(0, 105)
        plot.set_xlabel("heads left in all")
        plot.set_ylabel("left of its kind (%)")
        plot.set_title(f"{named(record)}, {way}")
        plot.legend()
    return Drawing(canvas, "Share of the heads of each kind that are left, against all that are left.", rows)


def one_kind(record: Record) -> str | None:
    """Why heads by kind say nothing: one kind alone lost some."""
    of = record.parts.of
    lost = {kind for point in record.parts.points for kind in of if point.kept_by_kind.get(kind, 0) < of[kind]}
    return None if len(lost) > 1 or len(of) == 1 else "heads of one kind alone were pruned"


_PARTS = ("points", "of")
FIGURE = Figure("Heads left of each kind", "Voita et al. 2019, Figure 9", _PARTS, _draw, obstacle=one_kind)
