"""Which dependencies a head follows better than a fixed offset (Voita et al. 2019, Table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.heads import Head
from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.roles import Best, Evidence, RolesFound
from headcount.report.section import Labelled, Printed, Section, table_of
from headcount.report.sections.roles import interval_percent
from headcount.report.table import Column, Rows, Table, best_of, headings
from headcount.report.verdicts import verdict

# best head / best fixed offset in percent: WMT; subtitles
_PAPER = {
    "nsubj v->s": "45 / 35; 77 / 45",
    "nsubj s->v": "52 / 35; 70 / 45",
    "obj v->o": "78 / 41; 61 / 46",
    "obj o->v": "73 / 41; 84 / 46",
    "amod n->a": "74 / 72; 81 / 80",
    "amod a->n": "82 / 72; 81 / 80",
    "advmod v->a": "48 / 46; 38 / 33",
    "advmod a->v": "52 / 46; 42 / 33",
}


def _best(record: Record[RolesFound]) -> list[Best]:
    return [row for row in record.parts.syntax if row.kind != "cross"]


def _answer(record: Record[RolesFound]) -> str:
    """By all heads: the best one on one half of the sentences is not always the one that has the role for certain."""
    rows, by_relation = _best(record), _by_relation(record.parts)
    verdicts = {
        key: by_relation.get(key, {row.head: row})
        for row in rows
        if row.holds is not None and (key := (row.kind, row.label))
    }
    held = [key for key, heads in verdicts.items() if any(item.holds for item in heads.values())]
    undecided = sum(
        key not in held and any(not item.below for item in heads.values()) for key, heads in verdicts.items()
    )
    if not verdicts:
        return f"None of the {len(rows)} relations has enough instances for a verdict."
    few = len(rows) - len(verdicts)
    rest = f" {few} more {'has' if few == 1 else 'have'} too few instances for a verdict." if few else ""
    rest += f" On {undecided} it is open." if undecided else ""
    if not held:
        return (
            f"No head {'for certain ' if undecided else ''}beats the best fixed offset by the required margin on any "
            f"of {plural(len(verdicts), 'relation')}.{rest}"
        )
    return (
        f"On {len(held)} of {plural(len(verdicts), 'relation')} a head beats the best fixed offset by the required "
        f"margin{_clearest([row for row in rows if row.holds])}.{rest}"
    )


def _by_relation(parts: RolesFound) -> dict[tuple[str, str], dict[str, Evidence]]:
    """By kind and label, the evidence of each head."""
    by_relation: dict[tuple[str, str], dict[str, Evidence]] = {}
    for head, evidence in parts.evidence.items():
        for item in evidence:
            if item.role == "syntactic":
                by_relation.setdefault((Head.parse(head).kind, item.label), {})[head] = item
    return by_relation


def _clearest(rows: Sequence[Best]) -> str:
    """The head with the largest lead, of those that were chosen and measured on different sentences."""
    if not rows:
        return ""
    clearest = max(rows, key=lambda row: row.value - row.baseline)
    shares = f"{100 * clearest.value:.0f}% against {100 * clearest.baseline:.0f}%"
    return f"; most clearly {clearest.head} for {clearest.label}: {shares}{best_of(len(rows))}"


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record[RolesFound]) -> Rows:
        return [
            [
                row.kind, row.label, row.head, 100 * row.value, interval_percent(row), 100 * row.baseline, row.trials,
                verdict(row),
            ]
            for row in _best(record)
        ]  # fmt: skip

    columns = headings(
        "kind", "dependency", "best head", Column("accuracy, %", 0), "95% interval", Column("best offset, %", 0),
        "instances", "syntactic",
    )  # fmt: skip
    return [table_of("The best head of each dependency", labelled, columns, rows)]


def _printed(record: Record[RolesFound]) -> list[Printed]:
    rows = _best(record)
    by_label = {row.label: row for row in rows if row.kind == "encoder"} or {row.label: row for row in rows}
    return [
        Printed(
            f"{label}: best head / best offset, %",
            paper,
            f"{100 * by_label[label].value:.0f} / {100 * by_label[label].baseline:.0f}" if label in by_label else None,
        )
        for label, paper in _PAPER.items()
    ]


SECTION = Section(
    order=12,
    title="Syntactic heads",
    question="Which dependencies do heads follow?",
    studies=("roles",),
    parts=("syntax",),
    command="headcount roles MODEL --data DATA_WITH_TREES --out DIR",
    answer=_answer,
    method=(
        "Word level: attention to a split word is summed over its pieces, attention from it averaged. Accuracy is the "
        "share of instances in which the head looks most at the other word of the dependency. The best head and the "
        "best offset are chosen on one half of the sentences and measured on the other."
    ),
    tables=_tables,
    figures=("syntactic-heads", "relative-positions"),
    printed=_printed,
    when=lambda record: bool(record.parts.syntax),
    without="the sentences had no trees",
)
