"""How quality falls as learned gates close ever more heads (Voita et al. 2019, Figures 7 to 10, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, table_of
from headcount.report.table import Column, Table, digits_for, interval


def _count(counts: Any) -> int:
    return (
        sum(counts.values())
        if isinstance(counts, Mapping)
        else len(counts)
        if isinstance(counts, list)
        else int(counts)
    )


def _points(record: Record) -> list[tuple[str, int, dict[str, Any]]]:
    """(factor, heads left, point), most heads first."""
    rows = [(penalty, _count(point["kept"]), point) for penalty, point in record.parts["sweep"].items()]
    return sorted(rows, key=lambda item: -item[1])


def _after(point: Mapping[str, Any]) -> Mapping[str, Any]:
    return point["quality"].get("after") or point["quality"].get("cut") or {}


def _answer(record: Record) -> str:
    points = _points(record)
    before = points[0][2]["quality"].get("before") or {}
    sentences = [
        f"{_after(point)['value']:.{digits_for(_after(point)['value'])}f} with {left}"
        for _, left, point in points
        if _after(point)
    ]
    start = f"{before['value']:.{digits_for(before['value'])}f} with all heads, " if before else ""
    return f"Learned by {record.parts['method']}: quality is {start}{', '.join(sentences)} heads."


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record) -> list[list[Any]]:
        return [
            [
                penalty, left, _kinds(point["kept"]), (point["quality"].get("cut") or {}).get("value"),
                _after(point).get("value"),
                interval(_after(point).get("low"), _after(point).get("high"), 3), point.get("settled"),
            ]
            for penalty, left, point in _points(record)
        ]  # fmt: skip

    columns = [Column("penalty"), Column("heads left"), Column("by kind"), Column("just cut", 3)]
    columns += [Column("quality", 3), Column("95% interval")]
    columns.append(Column("gates settled", 2))
    return [table_of("One model for each factor of the penalty", labelled, columns, rows)]


def _kinds(counts: Any) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counts.items()) if isinstance(counts, Mapping) else ""


def _printed(record: Record) -> list[Printed]:
    values = ", ".join(f"{left}: {_after(point)['value']:.2f}" for _, left, point in _points(record) if _after(point))
    return [
        Printed("WMT, encoder heads left: BLEU", "48: 29.6, 19: plateau, 10: 29.5, 5: 29.0, 2: 28.25", values),
        Printed("subtitles, encoder heads left: BLEU", "48: 32.4, 17: plateau, 9 and 4: 32.15, 1: 31.7", None),
        Printed(
            "WMT, all kinds e/d/d-e, from trained | from scratch",
            "14/31/30 29.62|29.47, 12/21/25 29.36|28.95, 8/13/15 29.06|28.56, 5/9/12 28.90|28.41",
            None,
        ),
    ]


SECTION = Section(
    order=52,
    title="Learned pruning",
    question="How few heads does the model keep when it may choose?",
    studies=("prune sweep",),
    parts=("sweep",),
    command="headcount prune MODEL --choose l0 --penalty 0.01,0.03,0.1 --task TASK --data DATA --out DIR",
    answer=_answer,
    how="Every head gets a gate, learned with the model under a penalty for open gates; closed heads are removed.",
    tables=_tables,
    printed=_printed,
    when=lambda record: bool(record.parts["sweep"]),
    without="other processes are at its first models",
)
