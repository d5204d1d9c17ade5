"""Quality of a model at its task."""

from __future__ import annotations

from math import isnan

from headcount.plural import plural
from headcount.record import Record
from headcount.record.result import Quality
from headcount.record.results.evaluate import Evaluation
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Rows, Table, headings


def _answer(record: Record[Evaluation]) -> str:
    parts, quality = record.parts, record.parts.quality
    data = record.signature.arguments.get("data")
    texts = f"{plural(parts.examples, 'text')} of {data}" if data else plural(parts.examples, "text")
    spread = _spread(quality)
    interval = f"95% {spread}" if spread else "no interval"
    against = record.signature.arguments.get("against")
    reference = f", from the embeddings of {against}" if against else ""
    return f"{quality.metric} of {parts.task} is {_number(quality.value)} ({interval}) on {texts}{reference}."


def _spread(quality: Quality) -> str | None:
    """The 95% interval; None if there is none, as for one text."""
    return None if isnan(quality.low) else f"{_number(quality.low)} to {_number(quality.high)}"


def _number(value: float) -> str:
    """Four digits, and all before the point: a perplexity may be large."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record[Evaluation]) -> Rows:
        quality = record.parts.quality
        return [
            [name, _number(value), _spread(quality) if name == quality.metric else None]
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
    method="Measured on the texts named above; the interval is over examples, which count as independent.",
    tables=_tables,
)
