"""When in training heads become dispensable (Michel et al. 2019, section 6)."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.sections.curves import claim_rows
from headcount.report.table import Column, Table


def _kept_at(line: dict[str, Any], share: float) -> float | None:
    nearest = min(line["points"], key=lambda point: abs(point["share"] - share))
    return nearest["kept_share"]


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{100 * share:.0f}%"


def _answer(record: Record) -> str:
    first, last = record.parts["epochs"][0], record.parts["epochs"][-1]
    return (
        f"With 40% of the heads gone, the model of epoch {first['epoch']} keeps {_percent(_kept_at(first, 0.4))} of "
        f"its own {record.parts['metric']}, that of epoch {last['epoch']} {_percent(_kept_at(last, 0.4))}."
    )


def _tables(labelled: Labelled) -> list[Table]:
    shares = [point["share"] for point in labelled[0][1].parts["epochs"][0]["points"][1:]]

    def rows(record: Record) -> list[list[Any]]:
        lines = []
        for line in record.parts["epochs"]:
            kept = [point["kept_share"] for point in line["points"][1:]]
            lines.append([line["epoch"], line["value"], *(None if share is None else 100 * share for share in kept)])
        return lines

    columns = [
        Column("epoch"), Column(labelled[0][1].parts["metric"], 2),
        *(Column(f"{100 * share:.0f}% gone", 0) for share in shares),
    ]  # fmt: skip
    shown, lines = told(labelled, rows, columns)
    tables = [Table("% of an epoch's own score that is left", shown, lines)]
    claims = [row for _, record in labelled for row in claim_rows(record)]
    if claims:
        tables.append(Table("Claims of the paper", [Column("the paper says"), Column("here")], claims))
    return tables


def _printed(record: Record) -> list[Printed]:
    values = ", ".join(f"{line['epoch']}: {line['value']:.1f}" for line in record.parts["epochs"])
    late = {line["epoch"]: _kept_at(line, 0.4) for line in record.parts["epochs"] if line["epoch"] >= 10}
    kept = ", ".join(f"{_percent(share)} at epoch {epoch}" for epoch, share in late.items()) or None
    paper = "1: 3.0, 2: 6.2, 3: 18.1, 5: 26.9, 10: 30.6, 20: 34.5, 30: 34.7, 40: 34.9 BLEU"
    return [
        Printed("unpruned score by epoch", paper, f"{values} {record.parts['metric']}"),
        Printed("kept with 40% pruned, from epoch 10 on", "85 to 90%", kept),
    ]


SECTION = Section(
    order=40,
    title="Pruning during training",
    question="When do heads become dispensable?",
    studies=("dynamics",),
    parts=("epochs", "order"),
    command="headcount study dynamics RUN --task TASK --data DATA --out DIR",
    answer=_answer,
    how="The model of every epoch is pruned by its own scores and compared with itself unpruned.",
    tables=_tables,
    figures=("dynamics",),
    printed=_printed,
)
