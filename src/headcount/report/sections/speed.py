"""What removal gains in speed (Michel et al. 2019, Table 4)."""

from __future__ import annotations

import statistics
from collections.abc import Hashable
from typing import Any

from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.bench import ComparedQuality, Speed
from headcount.report.figure import short_names
from headcount.report.section import Labelled, Printed, Section, table_of, tables_of_alike
from headcount.report.table import Column, Rows, Table, best_of, headings, interval, within
from headcount.statistics import Interval

_RATIO = (
    "The result is times as fast as the first model: in each repeat the models run one after the other, and the median "
    "of their time ratios is shown with its 95% interval."
)
_TOGETHER = (
    "Times as fast: the median over all settings. Quality of all models on the same texts, exports in their runtimes; "
    "the change from the first model has a paired interval. A dash: not measured, as the runtime gives no logits "
    "or the model writes nothing."
)
_PAPER = {1: "+1.9%", 4: "+2.7%", 16: "+17.5%", 64: "+17.5%"}


def _answer(record: Record[Speed]) -> str:
    other_models, names = record.parts.others, short_names(record.parts.models)
    smaller = {row.model for row in record.parts.smaller}
    if not other_models:
        return "Only one model was measured; give a smaller one too to compare their speed."
    none_faster = bool(smaller) and not any(row.low > 1 for row in other_models)
    sentences = []
    for model in dict.fromkeys(row.model for row in other_models):
        rows = [row for row in other_models if row.model == model]
        faster, slower = sum(row.low > 1 for row in rows), sum(row.high < 1 for row in rows)
        best = max(rows, key=lambda row: (row.low > 1, row.faster))
        sentences.append(
            f"{names[model]} is faster in {faster} of {len(rows)} settings and slower in {slower}, by the "
            f"interval of each; at best {best.faster:.2f} times as fast (paired ratio, "
            f"{within(best, 2)}; {best.what}, batch {best.batch}{best_of(len(rows))})"
        )
    gain = "Nothing certain is gained: " if none_faster else ""
    return f"{gain}{'; '.join(sentences)}."


def _tables(labelled: Labelled) -> list[Table]:
    names = _names(labelled)

    def rows(record: Record[Speed]) -> Rows:
        return [
            [
                names[row.model], row.what, row.length, row.batch,
                *([None, "reference"] if row.model == record.parts.reference else [row.faster, interval(row, 2)]),
                1000 * row.seconds, row.per_second,
            ]
            for row in record.parts.rows
        ]  # fmt: skip

    def sizes(record: Record[Speed]) -> Rows:
        return [
            [names[name], size.stated_heads, size.parameters, size.weight_bytes, size.cache_bytes, size.flops]
            for name, size in record.parts.models.items()
        ]

    columns = headings(
        "model measured", "what", "tokens", "batch", Column("times as fast", 2), "95% interval",
        Column("median ms", 1), Column("median per second", unit=""),
    )  # fmt: skip
    weights = headings(
        "model measured", "heads", Column("parameters", unit=""), Column("weights", unit="B"),
        Column("k/v cache", unit="B"), Column("FLOPs", unit=""),
    )  # fmt: skip
    parts = labelled[0][1].parts
    note = (
        f"{_RATIO} Medians are of each model alone: on a busy machine, dividing one by another can give a different "
        f"number. Per second: examples read, or tokens written. On {parts.device}, {plural(parts.threads, 'thread')}."
    )
    return [
        table_of("Speed side by side", labelled, columns, rows, note=note),
        table_of("Size", labelled, weights, sizes),
        *tables_of_alike(
            [(label, record) for label, record in labelled if record.parts.quality], _quality_metric, _together
        ),
    ]


def _names(labelled: Labelled) -> dict[str, str]:
    """Short names of all models of a table."""
    return short_names(model for _, record in labelled for model in record.parts.models)


def _machine(record: Record[Speed]) -> Hashable:
    """What the note says: speeds on other devices, or with other threads, do not stand in one table."""
    return record.parts.device, record.parts.threads


def _quality_metric(record: Record[Speed]) -> str:
    return next(iter(record.parts.quality.values())).metric


def _together(labelled: Labelled) -> list[Table]:
    """Size, speed and quality in one table, of records that have a quality by the same metric."""
    names = _names(labelled)

    def rows(record: Record[Speed]) -> Rows:
        quality = record.parts.quality
        reference = next(iter(quality))
        return [
            [
                names[name], size.weight_bytes, *(_faster(record, name, what) for what in ("reading", "writing")),
                *(_quality(quality[name], is_reference=name == reference) if name in quality else [None] * 4),
            ]
            for name, size in record.parts.models.items()
        ]  # fmt: skip

    metric = _quality_metric(labelled[0][1])
    columns = headings(
        "model measured", Column("weights", unit="B"), Column("reading, times as fast", 2),
        Column("writing, times as fast", 2), Column(metric, 3), "95% interval", Column("change", 3, signed=True),
        "95% interval of change",
    )  # fmt: skip
    return [table_of("Size, speed and quality", labelled, columns, rows, note=_TOGETHER)]


def _faster(record: Record[Speed], model: str, what: str) -> float | None:
    """The median over settings of how much faster a model is than the first."""
    ratios = [row.faster for row in record.parts.rows if row.model == model and row.what == what]
    return statistics.median(ratios) if ratios else None


def _quality(quality: ComparedQuality, *, is_reference: bool) -> list[Any]:
    measured = [quality.value, interval(quality, 3)]
    if is_reference:
        return [*measured, None, "reference"]
    change = Interval(quality.difference, quality.difference_low, quality.difference_high)
    return [*measured, change.value, interval(change, 3)]


def _printed(record: Record[Speed]) -> list[Printed]:
    reading = [row for row in record.parts.without_heads if row.what == "reading"]
    names = short_names(record.parts.models)
    percent, lines = Column("", 1, signed=True), []

    def name(model: str) -> str:
        return f"{names[model]} " if len({row.model for row in reading}) > 1 else ""

    for batch, paper in _PAPER.items():
        gains = [
            f"{name(row.model)}{percent.text(100 * (row.faster - 1))}% at {row.length} tokens"
            for row in reading
            if row.batch == batch
        ]
        lines.append(Printed(f"gain at batch {batch}, half of BERT's heads removed", paper, ", ".join(gains) or None))
    return lines if reading else []


SECTION = Section(
    order=60,
    title="Speed",
    question="Is the smaller model faster?",
    studies=("bench",),
    parts=("rows",),
    command="headcount bench MODEL SMALLER --out DIR",
    answer=_answer,
    method=f"All models run in every repeat, in a new random order each time. {_RATIO}",
    tables=_tables,
    alike=_machine,
    figures=("speed",),
    printed=_printed,
)
