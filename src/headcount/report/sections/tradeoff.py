"""Quality against the heads left, by several ways of choosing them (Voita et al. 2019, section 6)."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.table import Column, Table, digits_for, interval


def _points(record: Record) -> list[dict[str, Any]]:
    """Most heads first."""
    return sorted(record.parts["tradeoff"], key=lambda point: -point["keep"])


def _means(record: Record) -> dict[str, dict[int, float]]:
    """way -> heads left -> quality after training, the mean over seeds."""
    values: dict[str, dict[int, list[float]]] = {}
    for point in _points(record):
        values.setdefault(point["way"], {}).setdefault(point["keep"], []).append(point["after"]["value"])
    return {way: {keep: sum(some) / len(some) for keep, some in line.items()} for way, line in values.items()}


def _answer(record: Record) -> str:
    parts, means = record.parts, _means(record)
    whole = parts["whole"]["value"]
    digits = digits_for(whole)
    fewest = min(keep for line in means.values() for keep in line)
    said = [f"{line[fewest]:.{digits}f} by {way}" for way, line in means.items() if fewest in line]
    return (
        f"With {fewest} of {parts['gated']} heads left, {parts['metric']} is {', '.join(said)}, against "
        f"{whole:.{digits}f} with all of them."
    )


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(digits_for(record.parts["whole"]["value"]) for _, record in labelled)

    def rows(record: Record) -> list[list[Any]]:
        return [
            [
                point["way"], point["keep"], ", ".join(f"{count} {kind}" for kind, count in point["kept"].items()),
                point["seed"], (point.get("cut") or {}).get("value"), point["after"]["value"],
                interval(point["after"].get("low"), point["after"].get("high"), digits),
            ]
            for point in _points(record)
        ]  # fmt: skip

    columns = [
        Column("way"), Column("heads left"), Column("by kind"), Column("seed"), Column("just cut", digits),
        Column("after training", digits), Column("95% interval"),
    ]  # fmt: skip
    shown, lines = told(labelled, rows, columns)
    tables = [Table(f"{labelled[0][1].parts['metric']} by heads left", shown, lines)]
    compared = [row for _, record in labelled for row in _compared(record, digits)]
    if compared:
        names = [Column("way"), Column("heads left"), Column("against the whole model", digits, signed=True)]
        names += [Column("95% interval"), Column("against the other way", digits, signed=True), Column("95% interval")]
        other = labelled[0][1].parts.get("against", "")
        tables.append(Table("Ways compared on the same examples", names, compared, f"The other way: {other}."))
    return tables


def _compared(record: Record, digits: int) -> list[list[Any]]:
    found = []
    for row in record.parts.get("compared") or ():
        line: list[Any] = [row["way"], row["keep"]]
        for name in ("lost", "against"):
            one = row.get(name)
            line += [one["difference"], interval(one["low"], one["high"], digits)] if one else [None, None]
        found.append(line)
    return found


def _printed(record: Record) -> list[Printed]:
    means = _means(record)
    first = next(iter(means))
    ours = ", ".join(f"{keep}: {value:.2f}" for keep, value in means[first].items())
    scratch = ", ".join(f"{keep}: {value:.2f}" for keep, value in means.get("scratch", {}).items()) or None
    return [
        Printed(
            "WMT, encoder heads left: BLEU", "48: 29.6, 19: plateau, 10: 29.5, 5: 29.0, 2: 28.25", f"{first} {ours}"
        ),
        Printed("subtitles, encoder heads left: BLEU", "48: 32.4, 17: plateau, 9 and 4: 32.15, 1: 31.7", None),
        Printed(
            "all kinds e/d/d-e, from scratch",
            "WMT 14/31/30 29.47, 12/21/25 28.95, 8/13/15 28.56, 5/9/12 28.41; 0.1 to 0.5 below gates",
            scratch,
        ),
    ]


SECTION = Section(
    order=53,
    title="The trade-off",
    question="Do learned gates beat a ranking?",
    studies=("tradeoff",),
    parts=("tradeoff", "whole"),
    command="headcount study tradeoff MODEL --keep 12,8,3 --task TASK --data DATA --out DIR",
    answer=_answer,
    how=(
        "Every way gets the same number of training steps: a rank is fine-tuned for as many as gates and fine-tuning "
        "together; from scratch has new random weights under the same heads."
    ),
    tables=_tables,
    figures=("tradeoff", "kept-by-kind", "kept-by-layer"),
    printed=_printed,
)
