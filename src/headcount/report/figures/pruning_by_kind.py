"""Quality as heads of one kind of attention are removed (Michel et al. 2019, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.record import Record
from headcount.report.canvas import band, panels
from headcount.report.figure import STEP, Drawing, Figure, each, judged, metrics, named, picked
from headcount.report.palette import MARKERS, kind_colour


def _draw(records: Sequence[Record]) -> Drawing:
    canvas, axes = panels(len(records), width=4.6, height=3.1, columns=2)
    rows: list[dict[str, Any]] = []
    for record, plot in zip(records, axes, strict=True):
        for number, line in enumerate(record.parts.by_kind):
            kind = line.kinds[0]
            shares = [100 * point.share for point in line.points]
            band(plot, shares, line.points, color=kind_colour(kind), marker=MARKERS[number], label=kind)
            row = {**judged(record), "kind": kind}
            rows += [row | picked(point, *STEP) for point in line.points]
        plot.set(xlabel="heads of the kind pruned (%)", ylabel=record.parts.metric, title=named(record, records))
        plot.legend(loc="lower left" if record.parts.higher_is_better else "upper left")
    orders = each(record.parts.by_kind[0].order for record in records)
    caption = (
        f"{metrics(records)} as more and more heads of one kind of attention are masked, lowest first by "
        f"{orders}, all other heads unchanged; bands are 95% intervals over examples."
    )
    return Drawing(canvas, caption, rows)


_WITHOUT = {"by_kind": "the model has only one kind of attention"}
FIGURE = Figure("Pruning each kind of attention", "Michel et al. 2019, Figure 4", ("by_kind",), _draw, _WITHOUT)
