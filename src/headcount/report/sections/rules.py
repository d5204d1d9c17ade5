"""Whether the rules of relevance propagation agree about the heads."""

from __future__ import annotations

from statistics import median

from headcount.record import Record
from headcount.record.results.rules import Rules
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Column, Rows, Table, headings, interval


def _answer(record: Record[Rules]) -> str:
    pairs = {str(pair): pair.spearman["all"].r for pair in record.parts.agreements}
    pairs = {pair: r for pair, r in pairs.items() if r == r}  # not NaN
    refused = "".join(f" {rule} is left out: {reason}" for rule, reason in record.parts.refused.items())
    if not pairs:
        return (
            "The rules cannot be compared: fewer than two of them support this model, or it has fewer than four heads."
            f"{refused}"
        )
    r = Column("", 2).text
    best, worst = max(pairs, key=lambda pair: pairs[pair]), min(pairs, key=lambda pair: pairs[pair])
    return (
        f"Over {len(pairs)} pairs of rules the median of Spearman's r is {r(median(pairs.values()))}; {best} agree "
        f"most ({r(pairs[best])}), {worst} least ({r(pairs[worst])}).{refused}"
    )


def _tables(labelled: Labelled) -> list[Table]:
    def agreements(record: Record[Rules]) -> Rows:
        return [
            [str(pair), kind, correlation.r, interval(correlation, 2)]
            for pair in record.parts.agreements
            for kind, correlation in pair.spearman.items()
        ]

    def conservation(record: Record[Rules]) -> Rows:
        return [[rule, 100 * sums.absorbed, f"{sums.error:.0e}"] for rule, sums in record.parts.conservation.items()]

    columns = headings("rules", "heads", Column("Spearman's r", 2), "95% interval")
    sums = headings("rule", Column("absorbed by constants, %", 0), "largest error of a cut")
    return [
        table_of("How the rules rank the heads", labelled, columns, agreements),
        table_of("Conservation of relevance", labelled, sums, conservation),
    ]


SECTION = Section(
    order=28,
    title="Rules of relevance",
    question="Does the propagation rule change which heads are relevant?",
    studies=("rules",),
    parts=("agreements",),
    command="headcount study rules MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    method=(
        "Every rule scores all heads on the same data; ranks are correlated over all heads and within each kind. "
        "Intervals are over heads, wider where both rules depend on the layer."
    ),
    tables=_tables,
)
