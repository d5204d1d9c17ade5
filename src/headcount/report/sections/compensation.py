"""How much of what is lost comes back without training."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Section, told
from headcount.report.table import Column, Table, digits_for


def _answer(record: Record) -> str:
    at = record.parts.get("at") or {}
    ratios = at.get("ratios") or {}
    if ratios:
        best = min(ratios, key=lambda pair: ratios[pair]["value"])
        how, other = best.split("/")
        share = ratios[best]
        return (
            f"With {at['removed']} of {record.parts['heads']} heads removed, {how} leaves {share['value']:.0%} (95% "
            f"{share['low']:.0%} to {share['high']:.0%}) of the excess loss that {other} leaves."
        )
    last = {how: points[-1]["value"] for how, points in record.parts["compensations"].items() if points}
    said = ", ".join(f"{value:.2f} with {how}" for how, value in last.items())
    return f"With the most heads removed, an example's excess loss is {said}."


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record) -> list[list[Any]]:
        return [
            [how, point["removed"], 100 * point["share"], point["value"], point["low"], point["high"], point["seconds"]]
            for how, points in record.parts["compensations"].items()
            for point in points
        ]

    top = max(
        point["value"] for _, record in labelled for line in record.parts["compensations"].values() for point in line
    )
    digits = digits_for(top)
    columns = [
        Column("compensation"), Column("heads gone"), Column("% gone", 0), Column("excess loss", digits),
        Column("low", digits), Column("high", digits), Column("seconds", 1),
    ]  # fmt: skip
    shown, lines = told(labelled, rows, columns)
    return [Table("What is lost under each compensation", shown, lines, "low, high: 95% interval over examples.")]


SECTION = Section(
    order=54,
    title="Compensation",
    question="How much of the loss comes back without training?",
    studies=("compensation",),
    parts=("compensations.none",),
    command="headcount study compensation MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    how=(
        "The same heads are removed in every way; what is left is fitted on one set of data and measured on another. "
        "Excess loss is an example's negative log-likelihood above the whole model's."
    ),
    tables=_tables,
    figures=("compensation",),
)
