"""Which kind of attention can spare the most heads (Michel et al. 2019, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.sections.curves import spared
from headcount.report.table import Column, Table, digits_for


def _lost_beyond(line: Mapping[str, Any], higher_is_better: bool, share: float = 0.6) -> float:
    """Mean loss over the steps at which more than this share of the kind is gone."""
    points = line["points"]
    changes = [point["value"] - points[0]["value"] for point in points if point["share"] > share] or [0.0]
    mean = sum(changes) / len(changes)
    return -mean if higher_is_better else mean


def _answer(record: Record) -> str:
    better = record.parts["higher_is_better"]
    lines = {line["kinds"][0]: line for line in record.parts["by_kind"]}
    said = [f"{100 * spared(line['points'], better):.0f}% of {kind}" for kind, line in lines.items()]
    worst = max(lines, key=lambda kind: _lost_beyond(lines[kind], better))
    return (
        f"Pruned alone, {', '.join(said)} heads can go before {record.parts['metric']} leaves the 95% interval of the "
        f"whole model; beyond 60% it is {worst} attention whose loss costs most."
    )


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(digits_for(record.parts["value"]) for _, record in labelled)

    def rows(record: Record) -> list[list[Any]]:
        return [
            [line["kinds"][0], point["removed"], 100 * point["share"], point["value"], point["low"], point["high"]]
            for line in record.parts["by_kind"]
            for point in line["points"]
        ]

    columns = [
        Column("kind"), Column("heads gone"), Column("% gone", 0), Column(labelled[0][1].parts["metric"], digits),
        Column("low", digits), Column("high", digits),
    ]  # fmt: skip
    shown, lines = told(labelled, rows, columns)
    return [Table("Each kind pruned alone", shown, lines, "low, high: 95% interval over examples.")]


def _printed(record: Record) -> list[Printed]:
    better = record.parts["higher_is_better"]
    lost = {line["kinds"][0]: _lost_beyond(line, better) for line in record.parts["by_kind"]}
    worst = max(lost, key=lambda kind: lost[kind])
    return [Printed("the kind that suffers most beyond 60%", "cross attention collapses", f"{worst} attention")]


SECTION = Section(
    order=32,
    title="Pruning by kind",
    question="Which kind of attention needs its heads most?",
    studies=("pruning curves",),
    parts=("by_kind",),
    command="headcount study curves MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    how="As above, with only the heads of one kind of attention masked and all others in place.",
    tables=_tables,
    figures=("pruning-by-kind",),
    printed=_printed,
)
