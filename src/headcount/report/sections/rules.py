"""Whether the rules of relevance propagation agree about the heads."""

from __future__ import annotations

from statistics import median
from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Section, told
from headcount.report.table import Column, Table, interval


def _pairs(record: Record) -> dict[str, float]:
    found = {pair: by_kind.get("all", {}).get("r") for pair, by_kind in record.parts["spearman"].items()}
    return {pair: r for pair, r in found.items() if r is not None}


def _answer(record: Record) -> str:
    pairs = _pairs(record)
    if not pairs:
        return "The rules cannot be compared: fewer than two of them could follow this model."
    best, worst = max(pairs, key=lambda pair: pairs[pair]), min(pairs, key=lambda pair: pairs[pair])
    return (
        f"Over {len(pairs)} pairs of rules the median of Spearman's r is {median(pairs.values()):.2f}; {best} agree "
        f"most ({pairs[best]:.2f}), {worst} least ({pairs[worst]:.2f})."
    )


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record) -> list[list[Any]]:
        return [
            [pair, kind, one["r"], interval(one["low"], one["high"], 2)]
            for pair, by_kind in record.parts["spearman"].items()
            for kind, one in by_kind.items()
        ]

    columns = [Column("rules"), Column("heads"), Column("Spearman's r", 2), Column("95% interval")]
    shown, lines = told(labelled, rows, columns)
    return [Table("How the rules rank the heads", shown, lines)]


SECTION = Section(
    order=28,
    title="Rules of relevance",
    question="Does the rule of propagation decide which heads are relevant?",
    studies=("rules",),
    parts=("spearman",),
    command="headcount study rules MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    how="Every rule scores all heads on the same data; ranks are correlated over all heads and within each kind.",
    tables=_tables,
)
