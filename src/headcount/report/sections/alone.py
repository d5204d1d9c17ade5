"""How far one head of a layer can do the work of all (Michel et al. 2019, section 3)."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.table import Column, Table, digits_for, interval


def _harm(record: Record, effect: dict[str, Any]) -> float:
    return float(-effect["difference"] if record.parts["higher_is_better"] else effect["difference"])


def _worst(record: Record) -> str:
    found = record.parts["all_but_one"]
    return max(found, key=lambda site: _harm(record, found[site]))


def _answer(record: Record) -> str:
    parts = record.parts
    found, alpha = parts["all_but_one"], parts["alpha"]
    fine = sum(not (effect["corrected"] < alpha and _harm(record, effect) > 0) for effect in found.values())
    worst = _worst(record)
    change = Column("", digits_for(found[worst]["difference"]), signed=True).text(found[worst]["difference"])
    return (
        f"In {fine} of {len(found)} layers the best head alone is not significantly worse than all of them together; "
        f"{worst} suffers most ({parts['metric']} {change})."
    )


def _tables(labelled: Labelled) -> list[Table]:
    names = {"all_but_one": "same data", "all_but_one_chosen_elsewhere": "second data"}
    digits = max(
        digits_for(effect["difference"]) for _, record in labelled for effect in record.parts["all_but_one"].values()
    )
    columns = [Column("layer"), Column("best head")]
    for said in names.values():
        columns += [Column(f"change, {said}", digits, signed=True), Column("95% interval"), Column("corrected p", 4)]

    def rows(record: Record) -> list[list[Any]]:
        lines = []
        for site, effect in record.parts["all_but_one"].items():
            line: list[Any] = [site, effect["head"]]
            for name in names:
                own = record.parts.get(name, {}).get(site)
                line += (
                    [own["difference"], interval(own["low"], own["high"], digits), own["corrected"]]
                    if own
                    else [None] * 3
                )
            lines.append(line)
        return lines

    shown, lines = told(labelled, rows, columns)
    if not any("all_but_one_chosen_elsewhere" in record.parts for _, record in labelled):
        shown, lines = shown[:-3], [line[:-3] for line in lines]
    return [Table("The best head of each layer alone", shown, lines)]


def _printed(record: Record) -> list[Printed]:
    worst = _worst(record)
    effect = record.parts["all_but_one"][worst]
    change = Column("", digits_for(effect["difference"]), signed=True).text(effect["difference"])
    here = f"{worst}: {record.parts['metric']} {change}"
    return [
        Printed("the layer that suffers most from one head", "last layer's cross attention: BLEU \u221213.56", here)
    ]


SECTION = Section(
    order=22,
    title="All but one",
    question="Could a layer do with a single head?",
    studies=("ablate",),
    parts=("all_but_one",),
    command="headcount ablate MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    how=(
        "In each layer all heads but one are masked; the head that does best is shown. Choosing and measuring on the "
        "same data flatters; with a second data set the choice is made on the first and measured on the second."
    ),
    tables=_tables,
    printed=_printed,
    without="heads were not left alone (--no-alone)",
)
