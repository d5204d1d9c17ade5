"""What removal gains in speed (Michel et al. 2019, Table 4)."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.table import Column, Table, interval

_PAPER = {1: "+1.9%", 4: "+2.7%", 16: "+17.5%", 64: "+17.5%"}


def _others(record: Record) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = record.parts["rows"]
    return [row for row in rows if row["model"] != rows[0]["model"]]


def _short(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2] or model


def _answer(record: Record) -> str:
    others = _others(record)
    if not others:
        return "One model was measured; give a smaller one beside it to see what is gained."
    said = []
    for model in dict.fromkeys(row["model"] for row in others):
        own = [row for row in others if row["model"] == model]
        faster, slower = sum(row["low"] > 1 for row in own), sum(row["high"] < 1 for row in own)
        best = max(own, key=lambda row: row["low"])
        said.append(
            f"{_short(model)} is surely faster in {faster} of {len(own)} settings and surely slower in {slower}; at "
            f"best {best['faster']:.2f} times as fast ({best['what']}, batch {best['batch']}, "
            f"95% {interval(best['low'], best['high'], 2)})"
        )
    return "; ".join(said) + "."


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record) -> list[list[Any]]:
        return [
            [
                _short(row["model"]), row["what"], row["length"], row["batch"], row["per_second"],
                1000 * row["seconds"], row["faster"], interval(row["low"], row["high"], 2),
            ]
            for row in record.parts["rows"]
        ]  # fmt: skip

    columns = [
        Column("model measured"), Column("what"), Column("tokens"), Column("batch"), Column("a second", 1),
        Column("ms", 1), Column("times as fast", 2), Column("95% interval"),
    ]  # fmt: skip
    shown, lines = told(labelled, rows, columns)
    tables = [Table("Speed side by side", shown, lines, "Times as fast as the first model, by paired repeats.")]
    sizes = [
        [_short(name), size["heads"], size["parameters"], size["weight_bytes"], size["flops"]]
        for _, record in labelled
        for name, size in (record.parts.get("models") or {}).items()
    ]
    if sizes:
        names = ("model measured", "heads", "parameters", "bytes of weights", "FLOPs")
        tables.append(Table("Size", [Column(name) for name in names], sizes))
    return tables


def _printed(record: Record) -> list[Printed]:
    reading = [row for row in _others(record) if row["what"] == "reading"]
    found = []
    for batch, paper in _PAPER.items():
        own = [row for row in reading if row["batch"] == batch]
        here = ", ".join(f"{100 * (row['faster'] - 1):+.1f}% at {row['length']} tokens" for row in own) or None
        found.append(Printed(f"gain at batch {batch}, half of BERT's heads removed", paper, here))
    return found if reading else []


SECTION = Section(
    order=60,
    title="Speed",
    question="Is the smaller model faster?",
    studies=("bench",),
    parts=("rows",),
    command="headcount bench MODEL SMALLER --out DIR",
    answer=_answer,
    how="All models run next to each other in every repeat, in a new order each time; medians of paired ratios.",
    tables=_tables,
    figures=("speed",),
    printed=_printed,
)
