"""The loss when a head is replaced by its role: the causal test of the role."""

from __future__ import annotations

from typing import Any

from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.roles import PlayedHead, RolesFound
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Column, Rows, Table, best_of, headings, interval
from headcount.statistics import Interval

_DIGITS = 4  # changes of a loss by one head are small


def _heads(record: Record[RolesFound]) -> dict[str, PlayedHead]:
    played = record.parts.played
    return dict(played.by_head) if played else {}


def _answer(record: Record[RolesFound]) -> str:
    played = record.parts.played
    heads, shares = _heads(record), played.certain if played else {}
    if not shares:
        return (
            f"Of {plural(len(heads), 'head')} replaced by a role none is worth anything for certain, so that what the "
            "role gives of it cannot be told."
        )
    best = max(shares, key=lambda name: shares[name].value)
    half = sum(share.low >= 0.5 for share in shares.values())
    share = shares[best]
    return (
        f"Of {plural(len(shares), 'head')} worth something for certain, the role alone gives at least half of that, by "
        f"the whole interval, for {half}; most for {best}, {heads[best].role} {heads[best].label}: "
        f"{_percent(share.value)} (95% {_percent(share.low)} to {_percent(share.high)}{best_of(len(shares))})."
    )


def _percent(share: float) -> str:
    return Column("", 0).text(100 * share) + "%"


def _share(share: Interval | None) -> list[Any]:
    return [100 * share.value, interval(share, 0, scale=100)] if share else [None, None]


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record[RolesFound]) -> Rows:
        shares = record.parts.played.certain if record.parts.played else {}
        return [
            [
                name, f"{head.role} {head.label}", head.alone.difference,
                interval(head.alone, _DIGITS), head.off.difference,
                *_share(shares.get(name)),
            ]
            for name, head in _heads(record).items()
        ]  # fmt: skip

    columns = headings(
        "head", "role", Column("role instead", _DIGITS, signed=True), "95% interval",
        Column("without head", _DIGITS, signed=True), Column("kept, %", 0), "95% interval",
    )  # fmt: skip
    played = labelled[0][1].parts.played
    title = f"Heads replaced by their roles, change of {played.metric}"
    note = (
        "Kept: of what a head is worth, the share that its role alone gives; none where it may be worth nothing "
        "(Holm's correction)."
    )
    return [table_of(title, labelled, columns, rows, note=note)]


SECTION = Section(
    order=11,
    title="Roles put to the test",
    question="Is its role all that a head does?",
    studies=("roles",),
    parts=("played.by_head",),
    command="headcount roles MODEL --data DATA --play --out DIR",
    answer=_answer,
    method=(
        "Every head with a role that says where to look does only that: it looks at the role's targets and nowhere "
        "else. What is lost is compared with what is lost without the head."
    ),
    tables=_tables,
    alike=lambda record: record.parts.played.metric,
    when=lambda record: bool(record.parts.played.by_head),
    without="no head holds a role that can be played, or --play was not given",
)
