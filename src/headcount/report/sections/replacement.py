"""How far the ranking of heads depends on what stands in for a head that is off."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Column, Table, interval


def _answer(record: Record) -> str:
    parts = record.parts
    known = {pair: one for pair, one in parts["spearman"].items() if one["r"] is not None}
    if not known:
        return "The replacements cannot be compared: nothing changes with one of them."
    worst = min(known, key=lambda pair: known[pair]["r"])
    least = known[worst]
    counts = ", ".join(f"{count} with {how}" for how, count in parts["significant"].items())
    return (
        f"Rankings of heads agree least between {worst}: Spearman's r is {least['r']:.2f} "
        f"(95% {interval(least['low'], least['high'], 2)}). "
        f"Heads that change {parts['metric']} significantly: {counts}."
    )


def _tables(labelled: Labelled) -> list[Table]:
    def agreement(record: Record) -> list[list[Any]]:
        return [
            [pair, one["r"], interval(one["low"], one["high"], 2)] for pair, one in record.parts["spearman"].items()
        ]

    def changes(record: Record) -> list[list[Any]]:
        effects = record.parts["effects"]
        return [[head, *(effects[how][head]["difference"] for how in effects)] for head in effects["zero"]]

    ranks = [Column("replacements"), Column("Spearman's r", 2), Column("95% interval")]
    columns = [Column("head"), *(Column(f"change, {how}", 3, signed=True) for how in ("zero", "mean", "resample"))]
    return [
        table_of("How the replacements rank the heads", labelled, ranks, agreement),
        table_of("Each head replaced alone", labelled, columns, changes, ranked=True),
    ]


SECTION = Section(
    order=23,
    title="What stands in for a head",
    question="Does the ranking of heads depend on what replaces a head that is off?",
    studies=("replacement",),
    parts=("spearman", "effects"),
    command="headcount study michel2019 --model MODEL --data DATA --parts replacement",
    answer=_answer,
    how="Every head is replaced alone: by zero, by its mean output, by its output on another example of the batch.",
    tables=_tables,
)
