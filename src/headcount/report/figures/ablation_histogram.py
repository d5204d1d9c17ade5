"""How the scores of all single ablations are distributed (Michel et al. 2019, Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.heads import Head
from headcount.record import Record
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, judged, metrics, named
from headcount.report.palette import INK, kind_colour


def _draw(records: Sequence[Record]) -> Drawing:
    canvas, axes = panels(len(records), width=4.2, height=2.8)
    rows = []
    for record, plot in zip(records, axes, strict=True):
        parts, effects = record.parts, record.parts.one_out
        values: dict[str, list[float]] = {}
        for name, effect in effects.items():
            values.setdefault(Head.parse(name).kind, []).append(parts.without(effect))
        edges = np.histogram_bin_edges([value for group in values.values() for value in group], bins=20)
        colours = [kind_colour(kind) for kind in values]
        plot.hist(list(values.values()), bins=edges.tolist(), stacked=True, color=colours, label=list(values))
        plot.axvline(parts.value, color=INK, linestyle="--", linewidth=1, label="all heads")
        plot.set(xlabel=f"{parts.metric} with one head masked", ylabel="heads", title=named(record, records))
        plot.locator_params(axis="x", nbins=5)  # more labels of many digits would overlap
        plot.locator_params(axis="y", integer=True)
        plot.legend(loc="upper left" if parts.higher_is_better else "upper right")
        rows += [{**judged(record), "head": name, "value": parts.without(effect)} for name, effect in effects.items()]
    caption = (
        f"Distribution of {metrics(records)} over all models with one head masked; the dashed line is the whole model."
    )
    return Drawing(canvas, caption, rows)


FIGURE = Figure("Scores of all single ablations", "Michel et al. 2019, Figure 1", ("one_out",), _draw)
