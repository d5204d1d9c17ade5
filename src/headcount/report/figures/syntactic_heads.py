"""The best head of each relation against the best fixed offset (Voita et al. 2019, Table 1 and Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from headcount.errors import UsageError
from headcount.record import Record
from headcount.record.results.roles import Best, RolesFound
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, origin
from headcount.report.groups import group_name, grouped
from headcount.report.palette import INK, LINES
from headcount.report.verdicts import verdict
from headcount.statistics import Interval, over_models

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _draw(records: Sequence[Record]) -> Drawing:
    groups = grouped(records)
    tables = [_bars(group) for group in groups]
    labels = list(dict.fromkeys(label for table in tables for label in table))
    if not labels:
        raise UsageError(
            "No record has a measured relation: the sentences had no trees. Run headcount roles on a treebank."
        )
    canvas, (plot,) = panels(1, width=max(5.0, 1.4 + (0.52 + 0.16 * len(groups)) * len(labels)), height=3.0)
    width = 0.8 / len(groups)
    names = [group_name(group, records) for group in groups]
    for number, table in enumerate(tables):
        at = [tick + (number - (len(groups) - 1) / 2) * width for tick in range(len(labels))]
        values = [table[label].height.value if label in table else 0.0 for label in labels]
        colour = LINES[number % len(LINES)]
        plot.bar(
            at, [100 * value for value in values], width=width * 0.92, color=colour, alpha=0.85, label=names[number]
        )
        for x, label in zip(at, labels, strict=True):
            if label in table:
                _mark(plot, x, width * 0.46, table[label])
    plot.set_xticks(range(len(labels)), [label.replace(" ", "\n").replace("->", "\u2192") for label in labels])
    plot.tick_params(axis="x", length=0)
    plot.set_ylabel("accuracy of the best head, %")
    plot.set_ylim(0, 109)
    plot.margins(x=0.02)
    plot.plot([], [], color=INK, linewidth=1.6, label="best fixed offset")
    plot.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    over = "models of the same data and sentences" if len(groups) < len(records) else "sentences"
    caption = (
        f"Accuracy of the best head on each relation and direction with its 95% interval over {over}; black bars: "
        "the best fixed offset on the same text; ticks: heads that are syntactic by the margin of the record; "
        "n: too few trials to decide."
    )
    return Drawing(canvas, caption, [row for record in records for row in _rows(record)])


class _Bar(NamedTuple):
    """The best heads of one relation, of one model or of several trained on the same data."""

    height: Interval  # over sentences, or over models and sentences
    baseline: float
    sign: str


def _bars(records: Sequence[Record]) -> dict[str, _Bar]:
    """label -> bar."""
    tables = [_best(record) for record in records]
    labels = dict.fromkeys(label for table in tables for label in table)
    return {label: _bar([table[label] for table in tables if label in table]) for label in labels}


def _bar(rows: Sequence[Best]) -> _Bar:
    if len(rows) == 1:
        row = rows[0]
        sign = "\u2713" if row.holds else f"n={row.trials}" if row.holds is None else ""
        return _Bar(Interval(row.value, row.low, row.high), row.baseline, sign)
    held = sum(bool(row.holds) for row in rows)
    mean = over_models([Interval(row.value, row.low, row.high) for row in rows])
    return _Bar(
        Interval(mean.value, max(0.0, mean.low), min(1.0, mean.high)),
        sum(row.baseline for row in rows) / len(rows),
        f"\u2713{held}/{len(rows)}" if held else "",
    )


def _mark(plot: Axes, x: float, half: float, bar: _Bar) -> None:
    """The interval, the best offset, and the sign of the verdict above them."""
    height = bar.height
    plot.hlines(100 * bar.baseline, x - half, x + half, color=INK, linewidth=1.6)
    if not isnan(height.low):
        plot.vlines(x, 100 * height.low, 100 * height.high, color=INK, linewidth=0.8)
    top = 100 * max(height.value if isnan(height.high) else height.high, bar.baseline) + 2
    size = 8 if bar.sign == "\u2713" else 5
    plot.text(x, top, bar.sign, ha="center", va="bottom", size=size, color=INK)


def _rows(record: Record[RolesFound]) -> list[dict[str, Any]]:
    return [{**origin(record), **asdict(row), "verdict": verdict(row)} for row in _best(record).values()]


def _best(record: Record[RolesFound]) -> dict[str, Best]:
    """label -> row, of the first kind: the encoder if there is one."""
    rows = record.parts.syntax
    kind = rows[0].kind if rows else ""
    return {row.label: row for row in rows if row.kind == kind}


_WITHOUT = {"syntax": "the sentences had no trees"}
FIGURE = Figure("Syntactic heads", "Voita et al. 2019, Table 1 and Figure 4", ("syntax",), _draw, _WITHOUT)
