"""What an exploration measured, and on what."""

from __future__ import annotations

from headcount.record import Record
from headcount.report.section import Section


def _answer(record: Record) -> str:
    parts = record.parts
    gradient = f"the gradient on {parts['gradient_on']}, " if parts["gradient_on"] else ""
    sentences = [
        f"Importance of this {parts['architecture']} is by {parts['measured_by']}",
        parts["because"].rstrip("."),
        f"Measured were roles on {parts['looked_at']}, {gradient}one head out on {parts['one_out_on']}",
        f"How rare a token is was counted in {parts['counted_in']}",
    ]
    return ". ".join(sentence for sentence in sentences if sentence) + "."


SECTION = Section(
    order=5,
    title="What was measured",
    question="What is importance here, and on which text?",
    studies=("explore",),
    parts=("objective", "measured_by"),
    command="headcount explore MODEL",
    answer=_answer,
    how=(
        "The objective follows from the class that the model was saved from: what it was trained for, or how far its "
        "output moves where it has no objective of its own."
    ),
)
