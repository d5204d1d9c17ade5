"""How many heads can go (Michel et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.table import Column, Table, digits_for


def spared(points: Sequence[Mapping[str, Any]], higher_is_better: bool) -> float:
    """The share of heads that can go before the value leaves the 95% interval of the whole model on its bad side."""
    whole, reached = points[0], 0.0
    for point in points:
        if point["value"] < whole["low"] if higher_is_better else point["value"] > whole["high"]:
            break
        reached = point["share"]
    return float(reached)


def orders(record: Record) -> dict[str, list[Sequence[Mapping[str, Any]]]]:
    """Curves by order; random orders are several."""
    found: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
    for line in record.parts["curves"]:
        found.setdefault(line["order"], []).append(line["points"])
    return found


def _answer(record: Record) -> str:
    better = record.parts["higher_is_better"]
    shares = {
        order: float(np.mean([spared(points, better) for points in lines])) for order, lines in orders(record).items()
    }
    said = [
        f"{100 * share:.0f}% {'in random order' if order == 'random' else f'by {order}'}"
        for order, share in shares.items()
    ]
    return (
        f"Before {record.parts['metric']} leaves the 95% interval of the whole model, "
        f"{', '.join(said[:-1]) + ' and ' + said[-1] if len(said) > 1 else said[0]} of the heads can go."
    )


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(digits_for(record.parts["value"]) for _, record in labelled)
    names = list(dict.fromkeys(order for _, record in labelled for order in orders(record)))
    spelled = ["random (mean)" if name == "random" else f"by {name}" for name in names]

    def rows(record: Record) -> list[list[Any]]:
        lines = orders(record)
        first = next(iter(lines.values()))[0]
        return [
            [
                point["removed"], 100 * point["share"],
                *(_mean_at(lines.get(name, []), place) for name in names),
            ]
            for place, point in enumerate(first)
        ]  # fmt: skip

    columns = [Column("heads gone"), Column("% gone", 0), *(Column(name, digits) for name in spelled)]
    shown, lines = told(labelled, rows, columns)
    tables = [Table(f"{labelled[0][1].parts['metric']} as heads go", shown, lines)]
    claims = [[label, *claim] for label, record in labelled for claim in claim_rows(record)]
    if claims:
        columns = [Column("model"), Column("the paper says"), Column("here")]
        some = claims if len(labelled) > 1 else [line[1:] for line in claims]
        tables.append(Table("Claims of the paper", columns if len(labelled) > 1 else columns[1:], some))
    return tables


def claim_rows(record: Record) -> list[list[str]]:
    words = {True: "holds", False: "does not hold", None: "open"}
    return [[claim["claim"], words[claim["holds"]]] for claim in record.parts.get("claims") or ()]


def _mean_at(lines: list[Sequence[Mapping[str, Any]]], place: int) -> float | None:
    values = [points[place]["value"] for points in lines if place < len(points)]
    return float(np.mean(values)) if values else None


def _printed(record: Record) -> list[Printed]:
    first = next(iter(orders(record)))
    share = spared(orders(record)[first][0], record.parts["higher_is_better"])
    paper = "20% (WMT), 40% (MNLI), 60% (SST-2)"
    return [Printed("heads that can go without noticeable loss", paper, f"{100 * share:.0f}% by {first}")]


SECTION = Section(
    order=30,
    title="Pruning step by step",
    question="How many heads can go, and in which order?",
    studies=("pruning curves",),
    parts=("curves",),
    command="headcount study curves MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    how=(
        "Heads of the whole model are masked a few at a time, the lowest score first, and the model is measured after "
        "each step. Bands are 95% intervals over examples; random orders are the control."
    ),
    tables=_tables,
    figures=("pruning-curves",),
    printed=_printed,
)
