"""Whether heads with a role are the important heads."""

from __future__ import annotations

from math import isnan

from headcount.record import Record
from headcount.report.joined import STUDY, Comparison, RoleImportance
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Column, Rows, Table, headings, interval, listed
from headcount.statistics import Interval

_NAMED = {"of the paper": "one of the paper's roles", "any": "a role"}


def _by_kind(parts: RoleImportance) -> list[Comparison]:
    """By the first measure of importance: for each kind the paper's roles, or any role if no head has those."""
    kinds: dict[str, Comparison] = {}
    for row in parts.comparisons:  # the paper's roles come first
        if row.measure == parts.comparisons[0].measure:
            kinds.setdefault(row.kind, row)
    return list(kinds.values())


def _answer(record: Record[RoleImportance]) -> str:
    rows = _by_kind(record.parts)
    sentences = [
        f"{row.top_with_role} of the {row.top} most important {row.kind} heads "
        f"{'has' if row.top_with_role == 1 else 'have'} {_NAMED[row.group]} ({row.top_expected:.1f} by chance"
        f"{_unmeasured(row)})"
        for row in rows
    ]
    main = rows[0]
    compared = (
        f"{main.kind} heads with such a role have {_number(main.mean_with)} on average, those without "
        f"{_number(main.mean_without)}: difference {_spread(main.difference)}, "
        f"within layers {_spread(main.within_layers)}"
    )
    return f"{'; '.join(sentences)}. By {main.measure}, {compared}."


def _unmeasured(row: Comparison) -> str:
    return f"; {listed(row.unmeasured)} heads were not looked for" if row.unmeasured else ""


def _number(value: float) -> str:
    """Two significant digits: importance is of any size."""
    return f"{value:.2g}".replace("-", "\u2212")


def _spread(difference: Interval) -> str:
    if isnan(difference.value):
        return "not defined: no layer has heads with and without one"
    return f"{_number(difference.value)} (95% {_number(difference.low)} to {_number(difference.high)})"


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record[RoleImportance]) -> Rows:
        return [
            [
                row.measure, row.kind, row.group, f"{row.num_with_role} of {row.num_heads}",
                _number(row.mean_with), _number(row.mean_without), _spread(row.difference), _spread(row.within_layers),
                f"{row.top_with_role} of {row.top}", row.top_expected, row.correlation.r,
                interval(row.correlation, 2),
            ]
            for row in record.parts.comparisons
        ]  # fmt: skip

    columns = headings(
        "importance", "kind", "roles", "heads with one", "mean with", "mean without", "difference",
        "difference within layers", "of the top have one", Column("by chance", 1), Column("rank correlation", 2),
        "95% interval",
    )  # fmt: skip
    note = (
        "Roles of the paper: positional, syntactic, rare. The top: the most important quarter of the heads of a kind, "
        "and heads equal to its last. Within layers: heads with a role less the others of their layer, over the layers "
        "that have both."
    )
    return [table_of("Importance of heads with and without a role", labelled, columns, rows, note=note)]


SECTION = Section(
    order=21,
    title="Role against importance",
    question="Are heads with a role more important?",
    studies=(STUDY,),
    parts=("comparisons",),
    command="headcount explore MODEL",
    answer=_answer,
    method=(
        "Roles and importance are measured separately and joined head by head. Intervals of the difference are as "
        "wide as it is with roles dealt to heads at random, and no narrower than by Welch's t-test. Heads of a layer "
        "are alike, so the interval over all layers is wider by the root of their design effect. The comparison within "
        "layers is between heads of the same layer, and its interval no narrower than a t-interval over layers. The "
        "rank correlation (Spearman) is between having a role and importance. By chance: the share of heads with a "
        "role, times the number of the most important heads."
    ),
    tables=_tables,
)
