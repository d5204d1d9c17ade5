"""Which cheap scores agree with ablation, and the loss of pruning by each of them."""

from __future__ import annotations

from math import isnan

from headcount.record import Record
from headcount.record.results.agreement import Agreement
from headcount.report.section import Labelled, Section, metric_of, table_of
from headcount.report.table import Column, Rows, Table, best_of, digits_for, headings, interval, within


def _answer(record: Record[Agreement]) -> str:
    correlations = {method: row["all"] for method, row in record.parts.spearman.items() if not isnan(row["all"].r)}
    if not correlations:
        return "No score can be compared with ablation: all heads have the same effect, or there are fewer than four."
    best = max(correlations, key=lambda method: correlations[method].r)
    correlation = correlations[best]
    return (
        f"Of {len(correlations)} scores {best} agrees most with ablation of {record.parts.num_heads} heads: "
        f"Spearman's r is {Column('', 2).text(correlation.r)} ({within(correlation, 2)}{best_of(len(correlations))})."
    )


def _tables(labelled: Labelled) -> list[Table]:
    costs_of_orders = [row for _, record in labelled for rows in record.parts.pruning.values() for row in rows]
    digits = digits_for(max((abs(row.change.difference) for row in costs_of_orders), default=1.0))

    def agreement(record: Record[Agreement]) -> Rows:
        parts = record.parts
        return [
            [method, row["all"].r, interval(row["all"], 2)] + [100 * share.overlap for share in parts.overlap[method]]
            for method, row in parts.spearman.items()
        ]

    def costs(record: Record[Agreement]) -> Rows:
        return [
            [method, 100 * row.share, row.change.difference, interval(row.change, digits)]
            for method, rows in record.parts.pruning.items()
            for row in rows
        ]  # fmt: skip

    overlaps = [Column(f"of the best {share}%, %", 0) for share in (10, 25, 50)]
    ranks = headings("score", Column("Spearman's r", 2), "95% interval", *overlaps)
    changes = headings("order", Column("heads gone, %", 0), Column("change", digits, signed=True), "95% interval")
    refused = {method: reason for _, record in labelled for method, reason in record.parts.refused.items()}
    note = " ".join(f"{method} is left out: {reason}" for method, reason in refused.items())
    title = f"Change of {labelled[0][1].parts.metric} as the lowest heads of each score are removed"
    return [
        table_of("Scores against ablation", labelled, ranks, agreement, note=note),
        table_of(title, labelled, changes, costs),
    ]


SECTION = Section(
    order=27,
    title="Agreement of scores",
    question="Which cheap score can replace masking every head?",
    studies=("agreement",),
    parts=("spearman", "pruning"),
    command="headcount study agreement MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    method=(
        "Every score ranks all heads on the same data. Intervals: of r over heads, wider where both scores depend on "
        "the layer; of changes over examples."
    ),
    tables=_tables,
    alike=metric_of,
)
