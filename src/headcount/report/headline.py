"""Headline: the sentence that connects roles and importance, from the numbers of a model's records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from headcount.heads import PAPER_ROLES, Head
from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.roles import RolesFound
from headcount.record.results.tradeoff import Tradeoff
from headcount.report.joined import STUDY, RoleImportance
from headcount.report.table import listed


def headline(records: Sequence[Record]) -> str:
    """How many important heads have a role of the paper, and how many of those pruning keeps; empty if unknown."""
    sentences = [_important(record) for record in records if record.study == STUDY]
    sentences += [_kept(record, _marked(records)) for record in records if record.study == "tradeoff"]
    return " ".join(sentence for sentence in sentences if sentence)


def _important(record: Record[RoleImportance]) -> str:
    row = next((row for row in record.parts.comparisons if row.group == "of the paper"), None)
    if row is None:
        return ""
    roles = listed(row.roles, "or") + (f"; {listed(row.unmeasured)} not measured" if row.unmeasured else "")
    return (
        f"Of the {row.top} most important {row.kind} heads, {row.top_with_role} "
        f"{'has' if row.top_with_role == 1 else 'have'} a role of the paper "
        f"({roles}); by chance it would be {row.top_expected:.1f}."
    )


def _marked(records: Sequence[Record]) -> set[str]:
    """Heads with a role of the paper."""
    roles = next((record.parts.roles for record in records if isinstance(record.parts, RolesFound)), {})
    return {head for head, held in roles.items() if {item.role for item in held} & set(PAPER_ROLES)}


def _kept(record: Record[Tradeoff], marked: set[str]) -> str:
    """A sentence on the heads that the smallest gated model with at least a third of its heads keeps."""
    parts = record.parts
    kind = next((kind for kind in parts.of if parts.pruned == f"{kind} heads"), None)
    if kind is None:
        return ""
    points = [point for point in parts.points if point.way == "l0" and not point.seed]
    total = parts.of[kind]
    points = [point for point in points if total // 3 <= point.keep < total]
    roles = {head for head in marked if Head.parse(head).kind == kind}
    if not points or not roles:
        return ""
    point = min(points, key=lambda point: point.keep)
    heads_left = [head for head in point.heads if Head.parse(head).kind == kind]
    return (
        f"Pruned to {point.keep} of {total} {kind} heads, the model keeps {len(roles & set(heads_left))} of "
        f"{plural(len(roles), 'head')} with such a role; a random choice in the same layers would keep "
        f"{_expected(heads_left, roles, parts.heads_by_site, kind):.1f}."
    )


def _expected(heads_left: Sequence[str], roles: set[str], sites: Mapping[str, int], kind: str) -> float:
    """Heads with a role that a choice of as many heads in each layer keeps on average."""
    left_by_layer = Counter(Head.parse(head).layer for head in heads_left)
    marked = Counter(Head.parse(head).layer for head in roles)
    return sum(count * marked[layer] / sites[f"{kind}.{layer}"] for layer, count in left_by_layer.items())
