"""What heads do (Voita et al. 2019, sections 4 and 5)."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.table import Column, Table, interval
from headcount.report.verdicts import undecided

_MOST = 30  # rows; cards of heads have the rest


def _held(record: Record) -> dict[str, list[dict[str, Any]]]:
    return {head: some for head, some in record.parts["roles"].items() if some}


def _answer(record: Record) -> str:
    every, held = record.parts["roles"], _held(record)
    counts: dict[str, int] = {}
    for some in held.values():
        for role in dict.fromkeys(one["role"] for one in some):
            counts[role] = counts.get(role, 0) + 1
    said = ", ".join(f"{count} {role}" for role, count in sorted(counts.items(), key=lambda item: -item[1]))
    return (
        f"{len(held)} of {len(every)} heads play a role that can be named: {said}."
        if held
        else (f"No role could be found in {len(every)} heads.")
    )


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record) -> list[list[Any]]:
        found = [
            [
                head, one["role"], one["label"], 100 * one["value"], interval_percent(one),
                None if one["baseline"] is None else 100 * one["baseline"], one["trials"],
            ]
            for head, some in _held(record).items()
            for one in some
        ]  # fmt: skip
        return sorted(found, key=lambda row: -row[3])[:_MOST]

    columns = [
        Column("head"), Column("role"), Column("what"), Column("value, %", 0), Column("95% interval"),
        Column("baseline, %", 0), Column("trials"),
    ]  # fmt: skip
    shown, lines = told(labelled, rows, columns)
    evidence = [
        one for _, record in labelled for every in (record.parts.get("evidence") or {}).values() for one in every
    ]
    few = undecided(evidence)
    note = f"The {_MOST} clearest; the card of a head has the rest." + (
        f" No verdict: {'; '.join(few)}." if few else ""
    )
    return [Table("Roles that heads hold", shown, lines, note)]


def interval_percent(one: dict[str, Any]) -> str:
    low, high = one.get("low"), one.get("high")
    return interval(None if low is None else 100 * low, None if high is None else 100 * high, 0)


def _printed(record: Record) -> list[Printed]:
    claims = record.parts.get("claims") or {}
    positional, rare = claims.get("positional") or {}, claims.get("rare")
    sure = positional.get("confidence") or {}
    persons = record.parts.get("persons") or {}
    total = sum(persons.values())
    first = None
    if sure:
        first = f"{positional['above']} of {len(sure)} positional heads above .8"
    looks = f"{rare['head']}: {100 * rare['rarest']:.0f}%, {100 * rare['two_rarest']:.0f}%" if rare else None
    shares = "/".join(f"{100 * persons[person] / total:.0f}" for person in "123") + "%" if total else None
    return [
        Printed("confidence of positional heads", "all above .8", first),
        Printed(
            "first-layer head on the rarest, one of the two rarest tokens", "66%, 83% (subtitles), > 50% (WMT)", looks
        ),
        Printed("subjects by person (1st/2nd/3rd)", "6/3/91% (WMT), 32/21/47% (subtitles)", shares),
    ]


SECTION = Section(
    order=10,
    title="What heads do",
    question="What does each head do?",
    studies=("roles",),
    parts=("confidence", "roles"),
    command="headcount roles MODEL --data DATA --out DIR",
    answer=_answer,
    how=(
        "Where each head looks is compared with what a role says, sentence by sentence: positional heads look at one "
        "fixed offset, syntactic heads at one dependency, rare heads at the rarest token. A role is held from a stated "
        "value on; its baseline is chance or the best fixed offset. Special tokens and padding do not count."
    ),
    tables=_tables,
    figures=("head-roles",),
    printed=_printed,
)
