"""Whether the heads that do something that can be named are the heads that matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headcount.record import Record
from headcount.report.joined import STUDY
from headcount.report.section import Labelled, Section, told
from headcount.report.table import Column, Table, digits_for, interval

_NAMED = {"of the paper": "one of the paper's roles", "any": "a role"}


def _first(record: Record) -> list[Mapping[str, Any]]:
    """By the first measure of importance: for each kind the paper's roles, any role where no head has those."""
    comparisons = record.parts["comparisons"]
    own = [row for row in comparisons if row["measure"] == comparisons[0]["measure"]]
    kinds: dict[str, Mapping[str, Any]] = {}
    for row in own:  # the paper's roles come first
        kinds.setdefault(row["kind"], row)
    return list(kinds.values())


def _answer(record: Record) -> str:
    rows = _first(record)
    sentences = [
        f"{row['top_with_role']} of the {row['top']} most important {row['kind']} heads have {_NAMED[row['roles']]} "
        f"({row['top_expected']:.1f} by chance)"
        for row in rows
    ]
    main = rows[0]
    digits = _digits(main)
    change = Column("", digits, signed=True)
    compared = (
        f"{main['kind']} heads with such a role have {change.text(main['mean_with'])} on average, those without "
        f"{change.text(main['mean_without'])}: difference {change.text(main['difference'])} "
        f"(95% {interval(main['low'], main['high'], digits)})"
    )
    return f"{'; '.join(sentences)}. By {main['measure']}, {compared}."


def _digits(row: Mapping[str, Any]) -> int:
    """Digits that show the smaller of both means."""
    size = max(abs(row["mean_with"]), abs(row["mean_without"]))
    digits = digits_for(size)
    while digits < 7 and size < 0.1 * 10 ** (3 - digits):
        digits += 1
    return digits


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record) -> list[list[Any]]:
        return [
            [
                row["measure"], row["kind"], row["roles"], f"{row['with_role']} of {row['heads']}",
                f"{row['mean_with']:.3g}", f"{row['mean_without']:.3g}",
                f"{row['difference']:.2g} ({row['low']:.2g} to {row['high']:.2g})",
                f"{row['within_layers']:.2g} ({row['within_layers_low']:.2g} to {row['within_layers_high']:.2g})",
                f"{row['top_with_role']} of {row['top']}", row["top_expected"], row["correlation"],
                interval(row["correlation_low"], row["correlation_high"], 2),
            ]
            for row in record.parts["comparisons"]
        ]  # fmt: skip

    columns = [
        Column("importance"), Column("kind"), Column("roles"), Column("heads with one"), Column("mean with"),
        Column("mean without"), Column("difference (95%)"), Column("within layers (95%)"),
        Column("of the top have one"), Column("by chance", 1), Column("rank correlation", 2), Column("95% interval"),
    ]  # fmt: skip
    shown, lines = told(labelled, rows, columns)
    note = (
        "Roles of the paper: positional, syntactic, rare. The top: the most important quarter of the heads of a kind. "
        "Within layers: importance less the mean of the head's layer."
    )
    return [Table("Importance of heads with and without a role", shown, lines, note)]


SECTION = Section(
    order=21,
    title="Role against importance",
    question="Are the heads with a role the heads that matter?",
    studies=(STUDY,),
    parts=("comparisons",),
    command="headcount explore MODEL",
    answer=_answer,
    how=(
        "Roles and importance were measured apart and are put together head by head. Intervals of the difference are "
        "over heads, each group resampled by itself. Layers differ whatever their heads do: within layers, importance "
        "is less the mean of the head's layer. The rank correlation (Spearman) is between having a role and "
        "importance. By chance: the share of heads with a role, times the number of the most important heads."
    ),
    tables=_tables,
)
