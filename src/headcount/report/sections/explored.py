"""What an exploration measured, and on what."""

from __future__ import annotations

from headcount.record import Record
from headcount.record.results.explore import Setup
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Table, headings


def _answer(record: Record[Setup]) -> str:
    parts = record.parts
    reason = f" {parts.because}" if parts.because else ""
    return f"Importance of this {parts.architecture} is measured by {parts.measured_by}.{reason}"


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record[Setup]) -> list[list[str]]:
        parts = record.parts
        return [
            ["roles and confidence", parts.looked_at],
            ["gradient score", parts.gradient_on or "not defined"],
            ["one head out", parts.one_out_on],
            ["how rare a token is", parts.counted_in],
        ]

    columns = headings("what", "measured on")
    return [table_of("What was measured on which text", labelled, columns, rows)]


SECTION = Section(
    order=5,
    title="What was measured",
    question="What is importance here, and on which text?",
    studies=("explore",),
    parts=("objective", "measured_by"),
    command="headcount explore MODEL",
    answer=_answer,
    method=(
        "The objective follows from the class that the model was saved from: its training objective, or the change of "
        "its output if it has none."
    ),
    tables=_tables,
)
