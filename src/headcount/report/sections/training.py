"""How the model was trained."""

from __future__ import annotations

from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.train import TrainingRun
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Column, Rows, Table, digits_for, headings


def _answer(record: Record[TrainingRun]) -> str:
    parts = record.parts
    of_model = parts.candidates.get(parts.candidate, parts.epochs[-1].measures)
    measures = ", ".join(f"{name.replace('_', ' ')} {value:.{digits_for(value)}f}" for name, value in of_model.items())
    skipped = [
        f"{count} examples of {split} were left out ({reason})"
        for split, reasons in parts.skipped.items()
        for reason, count in reasons.items()
    ]
    sentences = [
        f"After {plural(len(parts.epochs), 'epoch')} ({plural(parts.steps, 'step')}, {parts.seconds / 60:.1f} minutes)"
        f", the model is {parts.candidate}: {measures}",
        *skipped,
    ]
    return ". ".join(sentences) + "."


def _tables(labelled: Labelled) -> list[Table]:
    names = list(dict.fromkeys(name for _, record in labelled for e in record.parts.epochs for name in e.measures))

    def rows(record: Record[TrainingRun]) -> Rows:
        return [
            [epoch.epoch, epoch.step, *(epoch.measures.get(name) for name in names)] for epoch in record.parts.epochs
        ]

    columns = headings("epoch", "step", *(Column(name.replace("_", " "), 3) for name in names))
    return [table_of("Measured after each epoch", labelled, columns, rows)]


SECTION = Section(
    order=70,
    title="Training",
    question="How was the model trained?",
    studies=("train",),
    parts=("epochs",),
    command="headcount train --data DATA --out DIR",
    answer=_answer,
    method="Trained on the training split, measured on the held-out split. The signature lists every setting.",
    tables=_tables,
)
