"""How scores rank the heads, and whether they agree."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from headcount.record import Record
from headcount.record.results.score import Scoring
from headcount.report.headmap import HeadMap
from headcount.report.section import Labelled, Section
from headcount.report.table import Column, Table, headings, interval
from headcount.statistics import spearman


def _ranking(record: Record[Scoring]) -> list[str]:
    scores = record.parts.scores
    return sorted(scores, key=lambda head: -scores[head])


def _answer(record: Record[Scoring]) -> str:
    order, conservation = _ranking(record), record.parts.conservation
    answer = (
        f"By the {record.parts.method} score {', '.join(order[:3])} come first and {', '.join(order[-3:])} last "
        f"of {len(order)} heads."
    )
    if conservation:
        answer += (
            f" Relevance of {conservation.predictions} predictions of {conservation.examples} examples: constants "
            f"absorbed {conservation.absorbed:.0%} of their size; largest error of a cut {conservation.error:.0e}."
        )
    return answer


def _tables(labelled: Labelled) -> list[Table]:
    several = len(labelled) > 1
    rankings = [_ranking(record) for _, record in labelled]
    columns = [Column("rank")]
    for label, record in labelled:
        columns.append(Column(f"{record.parts.method}, {label}" if several else record.parts.method))
        columns += [] if several else [Column("score", 4)]
    rows: list[list[Any]] = []
    for index in range(max(map(len, rankings))):
        heads = [order[index] if index < len(order) else None for order in rankings]
        rows.append([index + 1, *heads, *([] if several else [labelled[0][1].parts.scores[heads[0]]])])
    tables = [Table("Heads by their score", columns, rows, ranked=True)]
    return [*tables, _agreement(labelled)] if several else tables


def _agreement(labelled: Labelled) -> Table:
    rows: list[list[Any]] = []
    for (label, record), (other_label, other) in combinations(labelled, 2):
        scores, other_scores = record.parts.scores, other.parts.scores
        shared = [head for head in scores if head in other_scores]
        names = [f"{record.parts.method} ({label})", f"{other.parts.method} ({other_label})"]
        if len(shared) > 3:
            correlation = spearman([scores[head] for head in shared], [other_scores[head] for head in shared])
            rows.append([*names, correlation.r, interval(correlation, 2)])
        else:
            rows.append([*names, None, None])
    columns = headings("score", "other score", Column("Spearman's r", 2), "95% interval")
    return Table("Do the scores agree on the ranking?", columns, rows)


SECTION = Section(
    order=26,
    title="Scores",
    question="How do scores rank the heads?",
    studies=("score",),
    parts=("scores", "method"),
    command="headcount score MODEL --method gradient --task TASK --data DATA --out DIR",
    answer=_answer,
    method="One number per head from one pass over the data; higher means keep. The signature lists the options.",
    tables=_tables,
    sketch=lambda record: HeadMap(record.parts.scores),
)
