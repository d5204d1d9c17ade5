"""Quality as heads are removed, by each order, with random orders as control (Michel et al. 2019, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headcount.record import Record
from headcount.record.results.curves import Curve
from headcount.report.canvas import band, panels
from headcount.report.figure import STEP, Drawing, Figure, judged, metrics, named, picked
from headcount.report.palette import GREY, line_style


def _draw(records: Sequence[Record]) -> Drawing:
    canvas, axes = panels(len(records), width=4.6, height=3.1, columns=2)
    rows: list[dict[str, Any]] = []
    for record, plot in zip(records, axes, strict=True):
        lines = record.parts.curves
        random = [line for line in lines if line.order == "random"]
        for line in random:
            plot.plot(_shares(line), _values(line), color=GREY, linewidth=0.6, alpha=0.7)
        if random:
            mean = np.mean([_values(line) for line in random], axis=0)
            plot.plot(_shares(random[0]), mean, color=GREY, marker="x", label=f"random, mean of {len(random)}")
        for number, line in enumerate(line for line in lines if line.order != "random"):
            band(plot, _shares(line), line.points, label=line.order, **line_style(number))
        plot.set(xlabel="heads pruned (%)", ylabel=record.parts.metric, title=named(record, records))
        plot.legend(loc="lower left" if record.parts.higher_is_better else "upper left")
        for line in lines:
            row = {**judged(record), "order": line.order, "seed": line.seed}
            rows += [row | picked(point, *STEP) for point in line.points]
    caption = (
        f"{metrics(records)} as more and more heads of the whole model are masked, lowest first; bands are 95% "
        "intervals over examples, thin grey lines single random orders."
    )
    return Drawing(canvas, caption, rows)


def _shares(line: Curve) -> list[float]:
    return [100 * point.share for point in line.points]


def _values(line: Curve) -> list[float]:
    return [point.value for point in line.points]


FIGURE = Figure("Pruning by rank", "Michel et al. 2019, Figure 3", ("curves",), _draw)
