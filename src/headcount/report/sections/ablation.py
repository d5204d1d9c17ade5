"""Which heads matter: every head masked alone (Michel et al. 2019, section 3)."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.table import Column, Table, digits_for, interval

MOST = 20  # rows; the table of all heads has the rest


def _harm(record: Record, effect: dict[str, Any]) -> float:
    """How much worse the model is without the head."""
    change = float(effect["difference"])
    return -change if record.parts["higher_is_better"] else change


def _answer(record: Record) -> str:
    parts = record.parts
    effects, alpha, metric = parts["one_out"], parts["alpha"], parts["metric"]
    sure = [effect for effect in effects.values() if effect["corrected"] < alpha]
    better = sum(_harm(record, effect) < 0 for effect in sure)
    worst = max(effects, key=lambda head: _harm(record, effects[head]))
    digits = digits_for(effects[worst]["difference"])
    change = Column("", digits, signed=True).text(effects[worst]["difference"])
    if parts.get("distance"):
        order = sorted(effect["difference"] for effect in effects.values())
        return (
            f"Masking any of {len(effects)} heads moves the output: {metric} is {order[len(order) // 2]:.1g} without a "
            f"middling head and {order[-1]:.2g} without {worst}, which matters most. A distance is never negative, so "
            "that only sizes can be compared: that it is not zero says nothing of a head."
        )
    return (
        f"Of {len(effects)} heads {len(sure)} change {metric} significantly when masked alone (p < {alpha:g} after "
        f"Holm's correction), {better} of them for the better; {worst} matters most ({metric} {change})."
    )


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(
        digits_for(max(abs(effect["difference"]) for effect in record.parts["one_out"].values()))
        for _, record in labelled
    )
    columns = [
        Column("head"), Column("with it off", digits), Column("change", digits, signed=True), Column("95% interval"),
        Column("p", 4), Column("corrected p", 4),
    ]  # fmt: skip

    def rows(record: Record) -> list[list[Any]]:
        effects, tested = record.parts["one_out"], not record.parts.get("distance")
        order = sorted(effects, key=lambda head: -abs(effects[head]["difference"]))[:MOST]
        return [
            [
                head, effects[head]["value"], effects[head]["difference"],
                interval(effects[head]["low"], effects[head]["high"], digits),
                effects[head]["p"] if tested else None, effects[head]["corrected"] if tested else None,
            ]
            for head in order
        ]  # fmt: skip

    cut = any(len(record.parts["one_out"]) > MOST for _, record in labelled)
    note = f"The {MOST} largest changes; every head stands in the table of heads." if cut else ""
    shown, lines = told(labelled, rows, columns)
    metric = labelled[0][1].parts["metric"]
    return [Table(f"Change of {metric} without each head", shown, lines, note)]


def _printed(record: Record) -> list[Printed]:
    parts = record.parts
    encoder = {head: effect for head, effect in parts["one_out"].items() if head.startswith("encoder.")}
    raw = [effect for effect in encoder.values() if effect["p"] < parts["alpha"]]
    better = sum(_harm(record, effect) < 0 for effect in raw)
    whole = f"{parts['metric']} {parts['value']:.{digits_for(parts['value'])}f}"
    tested = encoder and not parts.get("distance")
    counted = f"{len(raw)} of {len(encoder)}, {better} better without" if tested else None
    return [
        Printed("the whole model", "BLEU 36.05 (WMT14 English-French)", whole),
        Printed(f"encoder heads with p < {parts['alpha']:g}, not corrected", "8 of 96, 4 better without", counted),
    ]


SECTION = Section(
    order=20,
    title="One head out",
    question="Which heads does the model need?",
    studies=("ablate",),
    parts=("one_out",),
    command="headcount ablate MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    how=(
        "Each head is masked alone and the model measured on the same examples. Intervals and p are of the paired "
        "difference over examples; corrected p are Holm's for all heads of the model."
    ),
    tables=_tables,
    figures=("ablation-map", "ablation-histogram"),
    printed=_printed,
)
