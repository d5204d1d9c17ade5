"""The loss without heads under each compensation, against the removed heads and the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.record import Record
from headcount.report.canvas import band, panels
from headcount.report.figure import STEP, Drawing, Figure, named, origin, picked
from headcount.report.palette import GREY, line_style


def _draw(records: Sequence[Record]) -> Drawing:
    from matplotlib.ticker import LogLocator, NullFormatter

    canvas, axes = panels(2 * len(records), width=3.8, height=2.9, columns=2)
    rows = []
    for record, plot, clock in zip(records, axes[::2], axes[1::2], strict=True):
        parts = record.parts
        for number, (way, points) in enumerate(parts.compensations.items()):
            style: dict[str, Any] = line_style(number)
            band(plot, [100 * point.share for point in points], points, label=way, **style)
            clock.scatter([point.seconds for point in points], [point.value for point in points], s=12, **style)
            row = {**origin(record), "compensation": way}
            rows += [row | picked(point, *STEP, "seconds") for point in points]
        if parts.at:
            plot.axvline(100 * parts.at.removed / parts.num_heads, color=GREY, linestyle=":", linewidth=1)
        plot.set(xlabel="heads removed (%)", ylabel="excess loss of an example", title=named(record, records))
        plot.legend()
        clock.set_xscale("log")
        clock.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        clock.xaxis.set_major_formatter("{x:g}")
        clock.xaxis.set_minor_formatter(NullFormatter())
        clock.set(xlabel="seconds spent, one point per size", ylabel="excess loss of an example")
    caption = (
        "Negative log-likelihood of a held-out example above the full model's, with 95% intervals over examples; left "
        "against the share of heads removed (dotted: where no compensation first loses the stated points of the "
        "metric), right against the seconds spent on scoring, searching and fitting."
    )
    return Drawing(canvas, caption, rows)


FIGURE = Figure("Pruning without training", "Beyond the papers", ("compensations.none",), _draw)
