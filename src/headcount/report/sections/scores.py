"""How scores rank the heads, and whether they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from headcount.heads import sites_of
from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.score import Scoring
from headcount.report.headmap import HeadMap
from headcount.report.measured import ends_of
from headcount.report.section import Labelled, Section
from headcount.report.table import Column, Table, headings, interval, listed
from headcount.statistics import Correlation, spearman, spearman_pairs


def _ranking(record: Record[Scoring]) -> list[str]:
    scores = record.parts.scores
    return sorted(scores, key=lambda head: -scores[head])


def _answer(record: Record[Scoring]) -> str:
    conservation, count = record.parts.conservation, plural(len(record.parts.scores), "head")
    ends = [
        f"{listed(heads)} {'come' if len(heads) > 1 else 'comes'} {position}"
        for heads, position in zip(ends_of(record.parts.scores), ("first", "last"), strict=True)
        if heads
    ]
    answer = (
        f"By the {record.parts.method} score {listed(ends)} of {count}."
        if ends
        else f"The {record.parts.method} score ranks {count}."
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
        columns.append(Column(_named(label, record) if several else record.parts.method))
        columns += [] if several else [Column("score", 4)]
    rows: list[list[Any]] = []
    for index in range(max(map(len, rankings))):
        heads = [order[index] if index < len(order) else None for order in rankings]
        rows.append([index + 1, *heads, *([] if several else [labelled[0][1].parts.scores[heads[0]]])])
    tables = [Table("Heads by their score", columns, rows, ranked=True)]
    return [*tables, _agreement(labelled)] if several else tables


def _named(label: str, record: Record[Scoring]) -> str:
    """The label of one of several scores with its method, which the label may have already."""
    method = record.parts.method
    return label if method in label.split(", ") else f"{method}, {label}"


def _agreement(labelled: Labelled) -> Table:
    rows: list[list[Any]] = []
    correlations = _correlations([record.parts.scores for _, record in labelled])
    names = [_named(label, record) for label, record in labelled]
    for row, column in combinations(range(len(labelled)), 2):
        correlation = correlations.get((row, column))
        values = (correlation.r, interval(correlation, 2)) if correlation else (None, None)
        rows.append([names[row], names[column], *values])
    columns = headings("score", "other score", Column("Spearman's r", 2), "95% interval")
    note = "Intervals are over heads, wider where both scores depend on the layer."
    return Table("Do the scores agree on the ranking?", columns, rows, note=note)


def _correlations(scores: Sequence[Mapping[str, float]]) -> dict[tuple[int, int], Correlation]:
    """The correlation of every two scores that share four heads or more. Scores of the same heads are ranked once."""
    values: dict[tuple[int, int], Correlation] = {}
    same_heads: dict[frozenset[str], list[int]] = {}
    for index, by_head in enumerate(scores):
        same_heads.setdefault(frozenset(by_head), []).append(index)
    for members in same_heads.values():
        heads = list(scores[members[0]])
        if len(heads) > 3 and len(members) > 1:
            rows = [[scores[index][head] for head in heads] for index in members]
            pairs = spearman_pairs(rows, groups=sites_of(heads))
            values |= {(members[row], members[column]): correlation for (row, column), correlation in pairs.items()}
    for row, column in combinations(range(len(scores)), 2):
        shared = [head for head in scores[row] if head in scores[column]]
        if (row, column) not in values and len(shared) > 3:
            pair = ([scores[index][head] for head in shared] for index in (row, column))
            values[row, column] = spearman(*pair, groups=sites_of(shared))
    return values


SECTION = Section(
    order=26,
    title="Scores",
    question="How do scores rank the heads?",
    studies=("score",),
    parts=("scores", "method"),
    command="headcount score MODEL --method gradient --task TASK --data DATA --out DIR",
    answer=_answer,
    method="One number per head; higher means keep. The signature lists the options.",
    tables=_tables,
    sketch=lambda record: HeadMap(record.parts.scores),
)
