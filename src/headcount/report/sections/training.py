"""How the model was trained."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Section, told
from headcount.report.table import Column, Table, digits_for


def _answer(record: Record) -> str:
    parts = record.parts
    last = parts["epochs"][-1]
    numbers = {name: value for name, value in last.items() if name not in ("epoch", "step") and _number(value)}
    said = ", ".join(f"{name.replace('_', ' ')} {value:.{digits_for(value)}f}" for name, value in numbers.items())
    return f"After {len(parts['epochs'])} epochs ({last.get('step', parts.get('steps'))} steps): {said}."


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _tables(labelled: Labelled) -> list[Table]:
    names = list(dict.fromkeys(n for _, r in labelled for e in r.parts["epochs"] for n, v in e.items() if _number(v)))

    def rows(record: Record) -> list[list[Any]]:
        return [[epoch.get(name) for name in names] for epoch in record.parts["epochs"]]

    columns = [Column(name.replace("_", " "), None if name in ("epoch", "step") else 3) for name in names]
    shown, lines = told(labelled, rows, columns)
    return [Table("Measured after each epoch", shown, lines)]


SECTION = Section(
    order=70,
    title="Training",
    question="How was the model trained?",
    studies=("train translation", "train classification", "train language-modelling"),
    parts=("epochs",),
    command="headcount train --data DATA --out DIR",
    answer=_answer,
    how="On the training part; numbers are of the held-out part. Every setting stands in the signature.",
    tables=_tables,
)
