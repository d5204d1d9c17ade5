"""Whether the same heads matter on other data (Michel et al. 2019, section 3)."""

from __future__ import annotations

from math import isnan
from typing import Any

from headcount.record import Record
from headcount.record.results.ablate import Ablation, Transfer
from headcount.report.section import Labelled, Printed, Section, table_of
from headcount.report.table import Column, Rows, Table, headings, interval, within

_MOSTLY = 0.5  # lower end of Pearson's r


def _other(record: Record[Ablation]) -> Transfer:
    other: Any = record.parts.other
    return other  # there is one: see `parts` of the section


def _answer(record: Record[Ablation]) -> str:
    pearson = _other(record).pearson
    if isnan(pearson.r):
        return "Undecided: on one of the two data sets no head changes the metric, or there are fewer than four heads."
    correlation = f"changes correlate with Pearson's r = {Column('', 2).text(pearson.r)} ({within(pearson, 2)})"
    if pearson.low > 0:  # noise of both measurements lowers r: even a low one does not say that they hardly do
        often = "mostly" if pearson.low >= _MOSTLY else "tend to"
        return f"Heads that matter on one data set {often} matter on the other: {correlation}."
    if pearson.high < 0:
        return f"Heads that matter on one data set tend to matter less on the other: {correlation}."
    return f"It is open whether heads that matter on one data set matter on the other: {correlation}."


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record[Ablation]) -> Rows:
        correlations = {"Pearson": _other(record).pearson, "Spearman": _other(record).spearman}
        return [[name, c.r, interval(c, 2)] for name, c in correlations.items()]

    columns = headings("correlation", Column("r", 2), "95% interval")
    return [table_of("Agreement of the changes on two data sets", labelled, columns, rows)]


def _printed(record: Record[Ablation]) -> list[Printed]:
    r = _other(record).pearson.r
    return [Printed("Pearson's r", ".56 (translation), .68 (MNLI)", None if isnan(r) else Column("", 2).text(r))]


SECTION = Section(
    order=24,
    title="Two data sets",
    question="Do the same heads matter on other data?",
    studies=("ablate",),
    parts=("other.one_out", "other.pearson"),
    command="headcount ablate MODEL --task TASK --data DATA --other-split SPLIT --out DIR",
    answer=_answer,
    method="The change without each head is measured on both data sets; one point per head.",
    tables=_tables,
    figures=("transfer",),
    printed=_printed,
)
