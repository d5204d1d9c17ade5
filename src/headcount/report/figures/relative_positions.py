"""Offsets of dependents from their heads, by relation (Voita et al. 2019, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headcount.record import Record
from headcount.record.results.roles import RolesFound
from headcount.report.canvas import panels
from headcount.report.data import data_path, measured_data
from headcount.report.figure import Drawing, Figure, short_names
from headcount.report.palette import GREY, LINES

_REACH = 8  # words shown on both sides; further offsets are added at the ends
_ARROW = ("v->s", "v->o", "n->a", "v->a", "h->d")  # from the head to the dependent


def _draw(all_records: Sequence[Record]) -> Drawing:
    records = _of_each_data(all_records)
    labels = dict.fromkeys(label for record in records for label in record.parts.relative if label.endswith(_ARROW))
    canvas, axes = panels(len(labels), width=3.0, height=2.2, columns=4)
    rows: list[dict[str, Any]] = []
    width = 0.85 / len(records)
    names = short_names(map(_data, records))
    for plot, label in zip(axes, labels, strict=True):
        for number, record in enumerate(records):
            shares = _shares(record.parts.relative.get(label, {}))
            at = [offset + (number - (len(records) - 1) / 2) * width for offset in shares]
            plot.bar(
                at, list(shares.values()), width=width, color=LINES[number % len(LINES)], label=names[_data(record)]
            )
            rows += [
                {"data": _data(record), "relation": label.split()[0], "offset": offset, "share": share}
                for offset, share in shares.items()
            ]
        plot.axvline(0, color=GREY, linewidth=0.6, zorder=0)
        plot.set_title(label.split()[0])
        ticks = [-_REACH, -4, -2, 0, 2, 4, _REACH]
        plot.set_xticks(ticks, [f"\u2264 {-_REACH}", "-4", "-2", "0", "2", "4", f"\u2265 {_REACH}"])
        plot.set_xlabel("position of the dependent")
    axes[0].set_ylabel("share")
    if len(records) > 1:
        handles, legend = axes[0].get_legend_handles_labels()
        canvas.legend(handles, legend, loc="outside lower center", ncols=len(records))
    caption = f"Position of dependents relative to the word they depend on, in words, on {', '.join(names.values())}."
    return Drawing(canvas, caption, rows)


def _of_each_data(records: Sequence[Record[RolesFound]]) -> list[Record[RolesFound]]:
    """The first record of each data set: where dependents stand does not depend on the model."""
    different: list[Record[RolesFound]] = []
    for record in records:
        if all((_data(record), record.parts.relative) != (_data(other), other.parts.relative) for other in different):
            different.append(record)
    return different


def _data(record: Record) -> str:
    return data_path(record) or measured_data(record) or "data"


def _shares(counts: Mapping[str, int]) -> dict[int, float]:
    total = sum(counts.values()) or 1
    shares = dict.fromkeys(range(-_REACH, _REACH + 1), 0.0)
    for offset, count in counts.items():
        shares[max(-_REACH, min(_REACH, int(offset)))] += count / total
    return shares


_WITHOUT = {"relative": "the sentences had no trees"}
FIGURE = Figure("Where dependents stand", "Voita et al. 2019, Figure 3", ("relative",), _draw, _WITHOUT)
