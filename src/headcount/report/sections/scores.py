"""How scores rank the heads, and whether they agree."""

from __future__ import annotations

from itertools import combinations
from math import isnan
from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Section
from headcount.report.table import Column, Table, interval
from headcount.statistics import spearman

_MOST = 10


def _answer(record: Record) -> str:
    scores = record.parts["scores"]
    order = sorted(scores, key=lambda head: -scores[head])
    return (
        f"By the {record.parts['method']} score {', '.join(order[:3])} come first and {', '.join(order[-3:])} last "
        f"of {len(order)} heads."
    )


def _tables(labelled: Labelled) -> list[Table]:
    tables = []
    columns = [Column("rank")]
    ranked = []
    for label, record in labelled:
        scores = record.parts["scores"]
        ranked.append(sorted(scores, key=lambda head: -scores[head]))
        columns.append(Column(f"{record.parts['method']}, {label}" if len(labelled) > 1 else record.parts["method"]))
    rows = [[place + 1, *(_at(order, place) for order in ranked)] for place in range(_MOST)]
    tables.append(Table(f"The first {_MOST} heads", columns, rows, "Every head stands in the table of heads."))
    if len(labelled) > 1:
        tables.append(_agreement(labelled))
    return tables


def _at(order: list[str], place: int) -> str | None:
    return order[place] if place < len(order) else None


def _agreement(labelled: Labelled) -> Table:
    rows: list[list[Any]] = []
    for (one, first), (other, second) in combinations(labelled, 2):
        here, there = first.parts["scores"], second.parts["scores"]
        both = [head for head in here if head in there]
        found = spearman([here[head] for head in both], [there[head] for head in both]) if len(both) > 3 else None
        known = found is not None and not isnan(found.r)
        names = f"{first.parts['method']} ({one})", f"{second.parts['method']} ({other})"
        rows.append([*names, found.r, interval(found.low, found.high, 2)] if found and known else [*names, None, None])
    columns = [Column("score"), Column("other score"), Column("Spearman's r", 2), Column("95% interval")]
    return Table("Do the scores rank heads alike?", columns, rows)


SECTION = Section(
    order=26,
    title="Scores",
    question="How do scores rank the heads?",
    studies=("score",),
    parts=("scores", "method"),
    command="headcount score MODEL --method gradient --task TASK --data DATA --out DIR",
    answer=_answer,
    how="One number per head from one pass over the data; always higher = keep. Options stand in the signature.",
    tables=_tables,
)
