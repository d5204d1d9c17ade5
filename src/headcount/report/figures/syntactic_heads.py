"""The best head of each relation against the best fixed offset (Voita et al. 2019, Table 1 and Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isnan

from headcount.errors import UsageError
from headcount.record import Record
from headcount.record.results.roles import Best, RolesFound
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, named
from headcount.report.palette import INK, LINES
from headcount.report.verdicts import verdict


def _draw(records: Sequence[Record]) -> Drawing:
    best_heads = [_best(record) for record in records]
    labels = list(dict.fromkeys(label for table in best_heads for label in table))
    if not labels:
        raise UsageError("No record has a relation that was measured: the sentences had no trees.")
    canvas, (plot,) = panels(1, width=max(5.0, 1.4 + (0.52 + 0.16 * len(records)) * len(labels)), height=3.0)
    width, rows = 0.8 / len(records), []
    names = _names(records)
    for number, (record, table) in enumerate(zip(records, best_heads, strict=True)):
        at = [tick + (number - (len(records) - 1) / 2) * width for tick in range(len(labels))]
        values = [table[label].value if label in table else 0.0 for label in labels]
        colour = LINES[number % len(LINES)]
        plot.bar(
            at, [100 * value for value in values], width=width * 0.92, color=colour, alpha=0.85, label=names[number]
        )
        for x, label in zip(at, labels, strict=True):
            if label not in table:
                continue
            row = table[label]
            half = width * 0.46
            plot.hlines(100 * row.baseline, x - half, x + half, color=INK, linewidth=1.6)
            if not isnan(row.low):
                plot.vlines(x, 100 * row.low, 100 * row.high, color=INK, linewidth=0.8)
            sign = "\u2713" if row.holds else f"n={row.trials}" if row.holds is None else ""
            top = 100 * max(row.value if isnan(row.high) else row.high, row.baseline) + 2
            plot.text(x, top, sign, ha="center", va="bottom", size=8 if row.holds else 5, color=INK)
            data = record.signature.arguments.get("data")
            rows.append({"model": record.signature.model, "data": data, **asdict(row), "verdict": verdict(row)})
    plot.set_xticks(range(len(labels)), [label.replace(" ", "\n").replace("->", "\u2192") for label in labels])
    plot.tick_params(axis="x", length=0)
    plot.set_ylabel("accuracy of the best head, %")
    plot.set_ylim(0, 109)
    plot.margins(x=0.02)
    plot.plot([], [], color=INK, linewidth=1.6, label="best fixed offset")
    plot.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    caption = (
        "Accuracy of the best head on each relation and direction with its 95% interval over sentences; black bars: "
        "the best fixed offset on the same text; ticks: heads that are syntactic by the margin of the record; "
        "n: so few trials that there is no verdict."
    )
    return Drawing(canvas, caption, rows)


def _best(record: Record[RolesFound]) -> dict[str, Best]:
    """label -> row, of the kind that comes first: the encoder where there is one."""
    rows = record.parts.syntax
    kind = rows[0].kind if rows else ""
    return {row.label: row for row in rows if row.kind == kind}


def _names(records: Sequence[Record]) -> list[str]:
    """Models by name; with the data where a model comes twice."""
    names = [named(record) for record in records]
    data = [str(record.signature.arguments.get("data", "")) for record in records]
    return [name if names.count(name) == 1 else f"{name}, {what}" for name, what in zip(names, data, strict=True)]


_WITHOUT = {"syntax": "the sentences had no trees"}
FIGURE = Figure("Syntactic heads", "Voita et al. 2019, Table 1 and Figure 4", ("syntax",), _draw, _WITHOUT)
