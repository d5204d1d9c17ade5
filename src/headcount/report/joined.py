"""Joined: roles and importance of heads, computed from records of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headcount.heads import PAPER_ROLES, Head
from headcount.record import Record
from headcount.record.result import Result
from headcount.record.results.ablate import Ablation
from headcount.record.results.roles import RolesFound
from headcount.record.results.score import Scoring
from headcount.report.apart import arguments_apart
from headcount.statistics import Correlation, Interval, difference_within, mean_difference, spearman

STUDY = "role and importance"
GROUPS: dict[str, tuple[str, ...]] = {"of the paper": PAPER_ROLES, "any": ()}  # roles; empty: all
TOP = 0.25  # share of the heads of a kind that count as the most important


@dataclass(frozen=True)
class Comparison:
    """Importance of the heads of one kind that have a role, and of those that have none."""

    measure: str  # of importance
    kind: str
    group: str  # of roles, see GROUPS
    roles: tuple[str, ...]  # of the group that were measured: without trees, no syntactic ones
    num_heads: int
    num_with_role: int
    mean_with: float
    mean_without: float
    difference: Interval  # of the means, over heads
    within_layers: Interval  # the same, of heads of the same layer; NaN if no layer has both
    top: int  # number of heads in the most important quarter, and of those equal to its last
    top_with_role: int
    top_expected: float  # by chance
    correlation: Correlation  # of importance with having such a role, by ranks

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Roles of the group that were not measured."""
        return tuple(role for role in GROUPS[self.group] if role not in self.roles)


@dataclass(frozen=True)
class RoleImportance(Result):
    """For each measure of importance, kind of attention and group of roles."""

    comparisons: tuple[Comparison, ...]


def joined(records: Sequence[Record]) -> Record[RoleImportance] | None:
    """Roles and importance of one model; None if one is missing or of other weights."""
    roles = next((record for record in records if isinstance(record.parts, RolesFound) and record.parts.roles), None)
    if roles is None:
        return None
    weights = {roles.signature.weights, ""}  # empty: unknown
    measures = {
        label: values
        for record in sorted(records, key=lambda record: record.study != "ablate")  # the exact measure first
        if record.signature.weights in weights or not roles.signature.weights
        for label, values in _importance(record, [other for other in records if isinstance(other.parts, Scoring)])
    }
    comparisons = tuple(
        comparison
        for label, values in measures.items()
        for kind in dict.fromkeys(Head.parse(name).kind for name in values)
        for comparison in _comparisons(label, kind, values, roles.parts)
    )
    if not comparisons:
        return None
    signature = replace(roles.signature, arguments={**roles.signature.arguments, "importance": list(measures)})
    return Record(STUDY, signature, RoleImportance(comparisons))


def is_importance(scoring: Scoring) -> bool:
    """Whether a score measures importance on data."""
    return scoring.method not in ("confidence", "random", "magnitude")


def _importance(record: Record, scores: Sequence[Record]) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Measures of importance in a record by name, higher = more important."""
    parts = record.parts
    if isinstance(parts, Ablation):
        label = f"{parts.metric} {'lost' if parts.higher_is_better else 'added'} without it"
        yield label, {head: parts.harm(effect) for head, effect in parts.one_out.items()}
    elif isinstance(parts, Scoring) and is_importance(parts):
        yield f"{parts.method} score{arguments_apart(record, scores)}", parts.scores


def _comparisons(label: str, kind: str, values: Mapping[str, float], parts: RolesFound) -> Iterator[Comparison]:
    heads = [name for name in values if name in parts.roles and Head.parse(name).kind == kind]
    measured = {item.role for evidence in (*parts.evidence.values(), *parts.roles.values()) for item in evidence}
    for group, names in GROUPS.items():
        roles = tuple(role for role in names or sorted(measured) if role in measured)
        playing = {head for head in heads if any(not names or item.role in names for item in parts.roles[head])}
        if heads and 0 < len(playing) < len(heads):
            yield _compared(label, kind, group, roles, heads, playing, values)


def _compared(
    label: str, kind: str, group: str, roles: tuple[str, ...], heads: Sequence[str], playing: set[str],
    values: Mapping[str, float],
) -> Comparison:  # fmt: skip
    groups = [[head for head in heads if (head in playing) == plays] for plays in (True, False)]
    sides = [[values[head] for head in names] for names in groups]
    lowest = sorted((values[head] for head in heads), reverse=True)[max(1, round(TOP * len(heads))) - 1]
    layers = [_layer(head) for head in heads]
    best = [head for head in heads if values[head] >= lowest]  # all of those that are equal: their order is no rank
    return Comparison(
        measure=label,
        kind=kind,
        group=group,
        roles=roles,
        num_heads=len(heads),
        num_with_role=len(playing),
        mean_with=sum(sides[0]) / len(sides[0]),
        mean_without=sum(sides[1]) / len(sides[1]),
        difference=mean_difference(*sides, layers=[_layer(head) for names in groups for head in names]),
        within_layers=difference_within([values[head] for head in heads], [head in playing for head in heads], layers),
        top=len(best),
        top_with_role=sum(head in playing for head in best),
        top_expected=len(best) * len(playing) / len(heads),
        correlation=spearman(
            [float(head in playing) for head in heads], [values[head] for head in heads], groups=layers
        ),
    )


def _layer(head: str) -> str:
    """The part of a head's name before its index."""
    return head.rpartition(".")[0]
