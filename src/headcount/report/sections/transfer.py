"""Whether the same heads matter on other data (Michel et al. 2019, section 3)."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.table import Column, Table, interval


def _words(r: float) -> str:
    return "mostly" if r >= 0.5 else "partly" if r >= 0.2 else "hardly"


def _answer(record: Record) -> str:
    found = record.parts["other"]["pearson"]
    if found["r"] is None:
        return "It cannot be said: on one of the two data sets no head changes anything."
    return (
        f"Heads that matter on one data set {_words(found['r'])} matter on the other: changes correlate with Pearson's "
        f"r = {found['r']:.2f} (95% {interval(found['low'], found['high'], 2)})."
    )


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record) -> list[list[Any]]:
        found = record.parts["other"]
        return [
            [name, one["r"], interval(one["low"], one["high"], 2), one["p"]]
            for name, one in (("Pearson", found["pearson"]), ("Spearman", found["spearman"]))
        ]

    shown, lines = told(labelled, rows, [Column("correlation"), Column("r", 2), Column("95% interval"), Column("p", 4)])
    return [Table("Agreement of the changes on two data sets", shown, lines)]


def _printed(record: Record) -> list[Printed]:
    r = record.parts["other"]["pearson"]["r"]
    return [Printed("Pearson's r", ".56 (translation), .68 (MNLI)", None if r is None else f"{r:.2f}")]


SECTION = Section(
    order=24,
    title="Two data sets",
    question="Do the same heads matter on other data?",
    studies=("ablate",),
    parts=("other.one_out", "other.pearson"),
    command="headcount ablate MODEL --task TASK --data DATA --other-split SPLIT --out DIR",
    answer=_answer,
    how="The change without each head is measured on both data sets; one point per head.",
    tables=_tables,
    figures=("transfer",),
    printed=_printed,
)
