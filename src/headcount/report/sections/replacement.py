"""How the ranking of heads depends on what replaces a masked head."""

from __future__ import annotations

from math import isnan

from headcount.record import Record
from headcount.record.results.replacement import Replacements
from headcount.report.section import Labelled, Section, metric_of, table_of
from headcount.report.table import Column, Rows, Table, headings, interval, lowest_of, within


def _answer(record: Record[Replacements]) -> str:
    parts = record.parts
    correlations = {
        pair: correlation for pair, correlation in parts.rank_correlations.items() if not isnan(correlation.r)
    }
    if not correlations:
        return (
            "The replacements cannot be compared: one of them changes nothing for any head, or there are fewer than "
            "four heads."
        )
    worst = min(correlations, key=lambda pair: correlations[pair].r)
    least = correlations[worst]
    counts = ", ".join(f"{count} with {replacement}" for replacement, count in parts.significant.items())
    return (
        f"Rankings of heads agree least between {worst}: Spearman's r is {Column('', 2).text(least.r)} "
        f"({within(least, 2)}{lowest_of(len(correlations))}). "
        f"Heads that change {parts.metric} significantly: {counts}."
    )


def _tables(labelled: Labelled) -> list[Table]:
    def agreement(record: Record[Replacements]) -> Rows:
        return [
            [pair, correlation.r, interval(correlation, 2)]
            for pair, correlation in record.parts.rank_correlations.items()
        ]

    def changes(record: Record[Replacements]) -> Rows:
        effects = record.parts.effects
        return [[head, *(effects[replacement][head].difference for replacement in effects)] for head in effects["zero"]]

    ranks = headings("replacements", Column("Spearman's r", 2), "95% interval")
    columns = [
        Column("head"),
        *(Column(f"change, {replacement}", 3, signed=True) for replacement in ("zero", "mean", "resample")),
    ]
    return [
        table_of("How the replacements rank the heads", labelled, ranks, agreement),
        table_of(
            f"Each head replaced alone: change of {labelled[0][1].parts.metric}",
            labelled,
            columns,
            changes,
            ranked=True,
        ),
    ]


SECTION = Section(
    order=23,
    title="What replaces a masked head",
    question="Does the ranking of heads depend on what replaces a masked head?",
    studies=("replacement",),
    parts=("rank_correlations", "effects"),
    command="headcount study michel2019 MODEL --data DATA --parts replacement",
    answer=_answer,
    method="Every head is replaced alone: by zero, by its mean output, by its output on another example of the batch.",
    tables=_tables,
    alike=metric_of,
)
