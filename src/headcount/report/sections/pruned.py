"""Smaller models that were made: what went, what it cost, what is left (Voita et al. 2019, section 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.table import Column, Table, digits_for, interval


def _ends(record: Record) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Quality before and after, where it was measured."""
    quality = record.parts.get("quality") or {}
    before, after = quality.get("before"), quality.get("after")
    return (before, after) if before and after else None


def _answer(record: Record) -> str:
    parts = record.parts
    gone, total, method = len(parts["removed"]), parts["heads"], parts.get("method", "a given list")
    before, after = parts["cost"]["before"]["parameters"], parts["cost"]["after"]["parameters"]
    said = f"{gone} of {total} heads were removed by {method}, and {1 - after / before:.0%} of all parameters with them"
    ends = _ends(record)
    if ends:
        digits = max(digits_for(end["value"]) for end in ends)
        metric = parts.get("metric", "quality")
        said += f"; {metric} was {ends[0]['value']:.{digits}f} before and is {ends[1]['value']:.{digits}f} after"
    if parts.get("measured_on", {}).get("held_out") is False:
        said += ", which flatters: it was measured on texts that heads were chosen on"
    return said + "."


def _tables(labelled: Labelled) -> list[Table]:
    def row(record: Record) -> list[list[Any]]:
        parts = record.parts
        ends = _ends(record)
        left = Counter(name.split(".")[0] for name in parts["removed"])
        values: list[Any] = [None, None, None]
        if ends:
            values = [ends[0]["value"], ends[1]["value"], interval(ends[1].get("low"), ends[1].get("high"), 3)]
        return [
            [
                parts.get("method", "given"), parts["heads"] - len(parts["removed"]),
                ", ".join(f"{count} {kind}" for kind, count in left.items()), *values,
                parts["cost"]["before"]["parameters"], parts["cost"]["after"]["parameters"],
            ]
        ]  # fmt: skip

    names = [Column("method"), Column("heads left"), Column("gone"), Column("before", 3), Column("after", 3)]
    names += [Column("95% interval"), Column("parameters before"), Column("parameters after")]
    shown, lines = told(labelled, row, names)
    return [Table("Smaller models", shown, lines)]


def _printed(record: Record) -> list[Printed]:
    ends = _ends(record)
    removed = Counter(name.split(".")[0] for name in record.parts["removed"])
    if record.parts.get("method") not in ("l0", "subset") or not ends:
        return []
    gone = f"{len(record.parts['removed'])} of {record.parts['heads']} gone"
    here = f"{gone}: {ends[0]['value']:.2f} to {ends[1]['value']:.2f}"
    paper = "WMT 48: 29.6, 19: plateau, 10: 29.5, 5: 29.0, 2: 28.25 BLEU"
    order = ", ".join(kind for kind, _ in removed.most_common())
    return [
        Printed("quality against encoder heads left", paper, here),
        Printed("which kind goes first", "encoder first, cross attention last", f"most gone first: {order}"),
    ]


SECTION = Section(
    order=50,
    title="Smaller models",
    question="What does a smaller model cost?",
    studies=("prune",),
    parts=("removed", "cost"),
    command="headcount prune MODEL --choose gradient --keep 50% --task TASK --data DATA --out DIR",
    answer=_answer,
    how="Heads are removed physically and the smaller model compared with the masked one before it is saved.",
    tables=_tables,
    figures=("gates-course",),
    printed=_printed,
)
