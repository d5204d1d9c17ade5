"""Attention of heads in a few sentences, shown on the cards of heads."""

from __future__ import annotations

from headcount.record import Record
from headcount.record.results.examples import Examples
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Column, Table


def _answer(record: Record[Examples]) -> str:
    examples = record.parts.examples
    return f"See the cards of the heads: {len(examples[0].attention)} heads on {len(examples)} sentences."


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record[Examples]) -> list[list[str]]:
        return [[" ".join(example.tokens["source"])] for example in record.parts.examples]

    return [table_of("Sentences", labelled, [Column("sentence")], rows)]


SECTION = Section(
    order=16,
    title="Example sentences",
    question="Where do heads look in example sentences?",
    studies=("examples",),
    parts=("examples",),
    command="headcount study examples MODEL --data DATA --out DIR",
    answer=_answer,
    method="The attention weights of every head on the first sentences that are short enough to display.",
    tables=_tables,
)
