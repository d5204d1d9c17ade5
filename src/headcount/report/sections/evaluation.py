"""Quality of a model at its task."""

from __future__ import annotations

from headcount.record import Record
from headcount.record.results.evaluate import Evaluation
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Rows, Table, headings


def _answer(record: Record[Evaluation]) -> str:
    parts, quality = record.parts, record.parts.quality
    data = record.signature.arguments.get("data")
    texts = f"{parts.examples} texts of {data}" if data else f"{parts.examples} texts"
    return (
        f"{quality.metric} of {parts.task} is {quality.value:.4g} (95% {quality.low:.4g} to {quality.high:.4g}) on "
        f"{texts}."
    )


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record[Evaluation]) -> Rows:
        quality = record.parts.quality
        return [
            [name, f"{value:.4g}", f"{quality.low:.4g} to {quality.high:.4g}" if name == quality.metric else None]
            for name, value in record.parts.measures.items()
        ]

    settings = [setting for _, record in labelled for setting in record.parts.settings.values()]
    columns = headings("measure", "value", "95% interval")
    return [table_of("Quality", labelled, columns, rows, note="; ".join(dict.fromkeys(settings)))]


SECTION = Section(
    order=3,
    title="Quality",
    question="How good is the model?",
    studies=("evaluate",),
    parts=("quality",),
    command="headcount evaluate MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    method="Measured on the texts named above; the interval is a bootstrap over examples.",
    tables=_tables,
)
