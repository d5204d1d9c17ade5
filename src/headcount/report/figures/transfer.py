"""Whether the same heads matter on two data sets (Michel et al. 2019, Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from headcount.heads import Head
from headcount.record import Record
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, judged, named
from headcount.report.palette import GREY, kind_colour
from headcount.statistics import Correlation


def _draw(records: Sequence[Record]) -> Drawing:
    canvas, axes = panels(len(records), width=3.6, height=3.3)
    rows = []
    for record, plot in zip(records, axes, strict=True):
        parts = record.parts
        second_effects = parts.other.one_out
        first_effects = {name: effect for name, effect in parts.one_out.items() if name in second_effects}
        kinds = {name: Head.parse(name).kind for name in first_effects}
        for kind in dict.fromkeys(kinds.values()):
            names = [name for name in first_effects if kinds[name] == kind]
            x, y = ([effects[name].difference for name in names] for effects in (first_effects, second_effects))
            plot.scatter(x, y, s=14, color=kind_colour(kind), alpha=0.8, linewidth=0, label=kind)
        plot.axhline(0, color=GREY, linewidth=0.6, zorder=0)
        plot.axvline(0, color=GREY, linewidth=0.6, zorder=0)
        change = f"change of {parts.metric}"
        plot.set(xlabel=f"{change}, first data", ylabel=f"{change}, second data")
        plot.set_title(f"{named(record, records)}\n{_title(parts.other.pearson)}")
        plot.legend()
        rows += [
            {
                **judged(record),
                "head": n,
                "first": first_effects[n].difference,
                "second": second_effects[n].difference,
            }
            for n in first_effects
        ]
    return Drawing(
        canvas, "Change of the metric when each head is masked alone, on two data sets; one dot per head.", rows
    )


def _title(pearson: Correlation) -> str:
    if isnan(pearson.r):
        return "no correlation: one side does not vary"
    return f"Pearson r = {pearson.r:.2f} (95% {pearson.low:.2f} to {pearson.high:.2f})"


_WITHOUT = {"other.one_out": "no second data set was given"}
_PARTS = ("one_out", "other.one_out")
FIGURE = Figure("The same heads on two data sets", "Michel et al. 2019, Figure 2", _PARTS, _draw, _WITHOUT)
