"""Whether one head of a layer can do the work of all (Michel et al. 2019, section 3)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from headcount.record import Record
from headcount.record.results.ablate import Ablation, BestAlone
from headcount.report.measured import leading, too_few
from headcount.report.section import Labelled, Printed, Section, metric_of, table_of
from headcount.report.table import Column, Rows, Table, digits_for, headings, interval


def _worst(parts: Ablation) -> tuple[str, str]:
    """The site that loses most with a single head, and the change of the metric."""
    best = parts.all_but_one or {}
    site = parts.worst(best)[0]
    difference = best[site].difference
    return site, f"{parts.metric} {Column('', digits_for(difference), signed=True).text(difference)}"


def _answer(record: Record[Ablation]) -> str:
    parts = record.parts
    best = parts.all_but_one or {}
    fine = sum(not (effect.corrected < parts.alpha and parts.harm(effect) > 0) for effect in best.values())
    site, change = _worst(parts)
    if parts.distance:
        moves = "moves" if parts.harms_most(site, best) else "seems to move"
        return f"With its best head alone, {site} {moves} the output most ({change}). Only sizes can be compared."
    leader, seems = leading(parts.worst(best))
    suffers = f"{leader} {'suffers' if parts.harms_most(site, best) else f'{seems} to suffer'} most"
    most = suffers if parts.harm(best[site]) > 0 else f"no layer was harmed here, not even {site}"
    caveat = "" if parts.alone_held_out else ", chosen on the same data, which is optimistic"
    return (
        f"In {fine} of {len(best)} layers the best head alone is not significantly worse than all of them together"
        f"{caveat}; {most} ({change}).{too_few(parts)}"
    )


def _tables(labelled: Labelled) -> list[Table]:
    has_second = any(record.parts.all_but_one_chosen_elsewhere for _, record in labelled)
    digits = max(
        digits_for(effect.difference) for _, record in labelled for effect in record.parts.all_but_one.values()
    )
    columns = headings("layer", "best head")
    sample = labelled[0][1].parts
    tested = not sample.distance  # a distance is never 0
    for data in ("held out" if sample.alone_held_out else "same data", "second data")[: 1 + has_second]:
        columns += [Column(f"change, {data}", digits, signed=True), Column("95% interval")]
        columns += [Column("corrected p", 4)] if tested else []

    def cells(effect: BestAlone | None) -> list[Any]:
        if effect is None:
            return [None] * (2 + tested)
        return [effect.difference, interval(effect, digits), *([effect.corrected] if tested else [])]

    def rows(record: Record[Ablation]) -> Rows:
        elsewhere = record.parts.all_but_one_chosen_elsewhere or {}
        return [
            [site, effect.head, *cells(effect), *(cells(elsewhere.get(site)) if has_second else [])]
            for site, effect in (record.parts.all_but_one or {}).items()
        ]

    return [table_of(f"The best head of each layer alone: change of {sample.metric}", labelled, columns, rows)]


def _alike(record: Record[Ablation]) -> Hashable:
    return metric_of(record), record.parts.alone_held_out, record.parts.distance


def _printed(record: Record[Ablation]) -> list[Printed]:
    value = ": ".join(_worst(record.parts))
    return [
        Printed("the layer that suffers most from one head", "last layer's cross attention: BLEU \u221213.56", value)
    ]


SECTION = Section(
    order=22,
    title="All but one",
    question="Is a single head enough for a layer?",
    studies=("ablate",),
    parts=("all_but_one",),
    command="headcount ablate MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    method=(
        "In each layer all heads but one are masked; the best remaining head is shown. Choosing and measuring on the "
        "same data is optimistic: whole studies choose on a held-out development split, and a second data set "
        "measures the same head elsewhere."
    ),
    tables=_tables,
    alike=_alike,
    printed=_printed,
    without="heads were not left alone (--no-alone)",
)
