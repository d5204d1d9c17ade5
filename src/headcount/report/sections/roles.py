"""What heads do (Voita et al. 2019, sections 4 and 5)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from headcount.heads import PAPER_ROLES
from headcount.record import Record
from headcount.record.results.roles import Evidence, RolesFound
from headcount.report.section import Labelled, Printed, Section, table_of
from headcount.report.table import Column, Rows, Table, headings, interval
from headcount.report.verdicts import close_values, missing_trials, undecided


def _answer(record: Record[RolesFound]) -> str:
    parts = record.parts
    counts = Counter(role for held in parts.roles.values() for role in dict.fromkeys(item.role for item in held))
    with_role = sum(bool(held) for held in parts.roles.values())
    trees = f"{parts.trees} of them with trees" if parts.trees else "none with a tree"
    corpus = f"{parts.sentences} sentences, {trees}"
    missing = missing_trials([item for items in parts.evidence.values() for item in items])
    if not with_role:
        return f"No role was found for any of the {len(parts.roles)} heads on {corpus}. {missing}".rstrip()
    named = ", ".join(f"{count} {role}" for role, count in counts.most_common())
    answer = f"On {corpus}, {with_role} of {len(parts.roles)} heads play a role that can be named: {named}."
    return f"{answer} {missing}".rstrip()


def _tables(labelled: Labelled) -> list[Table]:
    held = _held(labelled)
    return [_by_role(labelled), *([held] if held.rows or held.note else []), _by_head(labelled)]


def heads_by_role(parts: RolesFound) -> dict[str, dict[str, list[Evidence]]]:
    """role -> head -> evidence of its labels; the paper's roles first, then by margin."""
    by_role: dict[str, dict[str, list[Evidence]]] = {}
    for head, held in parts.roles.items():
        for evidence in held:
            by_role.setdefault(evidence.role, {}).setdefault(head, []).append(evidence)
    order = sorted(
        by_role, key=lambda role: (PAPER_ROLES.index(role) if role in PAPER_ROLES else len(PAPER_ROLES), role)
    )
    return {role: dict(sorted(by_role[role].items(), key=lambda item: -item[1][0].margin)) for role in order}


def _by_role(labelled: Labelled) -> Table:
    def rows(record: Record[RolesFound]) -> Rows:
        lines: list[list[Any]] = []
        for role, heads in heads_by_role(record.parts).items():
            head, (clearest, *_) = next(iter(heads.items()))
            lines.append([role, len(heads), head, clearest.label, 100 * clearest.value, 100 * clearest.baseline])
        without = sum(not held for held in record.parts.roles.values())
        return [*lines, ["no role", without, None, None, None, None]]

    columns = headings("role", "heads", "clearest head", "what", Column("value, %", 0), Column("baseline, %", 0))
    skipped = Counter[str]()
    for _, record in labelled:
        skipped |= Counter(record.parts.skipped)  # the same corpus, read for several models, counts once
    left_out = ", ".join(f"{count} ({reason})" for reason, count in skipped.items())
    note = f"Left out: {left_out}." if left_out else ""
    return table_of("Heads by role", labelled, columns, rows, note=note)


def _held(labelled: Labelled) -> Table:
    def rows(record: Record[RolesFound]) -> Rows:
        return [
            [
                role, head, clearest.label, 100 * clearest.value, interval_percent(clearest),
                100 * clearest.baseline, clearest.trials, ", ".join(other.label for other in further) or None,
            ]
            for role, heads in heads_by_role(record.parts).items()
            for head, (clearest, *further) in heads.items()
        ]  # fmt: skip

    columns = headings(
        "role", "head", "what", Column("value, %", 0), "95% interval", Column("baseline, %", 0), "trials", "also"
    )
    return table_of(
        "Roles that heads hold, clearest first", labelled, columns, rows, note=_doubts(labelled), grouped=True
    )


def _doubts(labelled: Labelled) -> str:
    """Roles without a verdict, and the number of close ones."""
    evidence = [item for _, record in labelled for items in record.parts.evidence.values() for item in items]
    open_roles, close = undecided(evidence), close_values(evidence)
    sentences = [f"No verdict: {'; '.join(open_roles)}."] if open_roles else []
    if close:
        sentences.append(f"{close}: more sentences may decide.")
    return " ".join(sentences)


def _by_head(labelled: Labelled) -> Table:
    def rows(record: Record[RolesFound]) -> Rows:
        parts = record.parts
        return [
            [
                head, parts.confidence[head].value, parts.left_out[head],
                ", ".join(f"{item.role} {item.label}" for item in parts.roles[head]) or None,
            ]
            for head in sorted(parts.confidence, key=lambda head: -parts.confidence[head].value)
        ]  # fmt: skip

    columns = headings("head", Column("confidence", 2), Column("on special tokens", 2), "roles")
    return table_of("Heads by their confidence", labelled, columns, rows, ranked=True)


def interval_percent(evidence: Evidence) -> str:
    return interval(evidence, 0, scale=100)


def _printed(record: Record[RolesFound]) -> list[Printed]:
    positional, rare, persons = record.parts.paper.positional, record.parts.paper.rare, record.parts.persons
    total = sum(persons.values())
    above = f"{positional.above} of {len(positional.confidence)} positional heads above .8"
    looks = f"{rare.head}: {100 * rare.rarest:.0f}%, {100 * rare.two_rarest:.0f}%" if rare else None
    shares = "/".join(f"{100 * persons[person] / total:.0f}" for person in "123") + "%" if total else None
    return [
        Printed("confidence of positional heads", "all above .8", above if positional.confidence else None),
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
    method=(
        "The attention of each head is compared with each role, sentence by sentence: positional heads look at one "
        "fixed offset, syntactic heads follow one dependency, rare heads look at the rarest token. A head has a role "
        "if the whole 95% interval of its value reaches the stated threshold, with p below .05 after Holm's "
        "correction; the baseline is chance or the best fixed offset. Special tokens and padding do not count."
    ),
    tables=_tables,
    figures=("head-roles",),
    printed=_printed,
)
