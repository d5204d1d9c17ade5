"""Pruned models of a trade-off record: the heads that gates keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headcount.claims.studied import StudiedModel
from headcount.heads import PAPER_ROLES, Head
from headcount.record.results.prune import SETTLED
from headcount.record.results.roles import Evidence, RolesFound
from headcount.record.results.tradeoff import HeldRole, LookedAt, Point, Tradeoff

ALL_KINDS = "heads of all kinds"


@dataclass(frozen=True)
class Pruning:
    """The models of one trade-off that were pruned by gates."""

    kinds: tuple[str, ...]  # that lost heads; empty: all kinds
    heads: tuple[str, ...]  # names of the whole model's heads; empty if unknown
    roles: Mapping[str, frozenset[str]]  # of the whole model's heads
    models: tuple[Point, ...]
    budgeted: int  # heads that may be removed
    trees: bool  # whether roles were measured on sentences with trees: without, no head is known to be syntactic

    @property
    def marked(self) -> set[str]:
        """Heads with a role of the paper."""
        return {head for head, names in self.roles.items() if names & set(PAPER_ROLES)}

    @property
    def settled(self) -> list[float]:
        """Shares of gates that had settled, of the models that recorded it."""
        return [model.gates.settled for model in self.models if model.gates]


def seeds_of(pruning: Pruning) -> int:
    return len({model.seed for model in pruning.models})


def unsettled(studied: Sequence[Pruning]) -> str:
    """A note on gates that had not settled in some model; empty if all had."""
    shares = [100 * share for pruning in studied for share in pruning.settled]
    if not shares or min(shares) >= 100 * SETTLED:
        return ""
    low, high = f"{min(shares):.0f}", f"{max(shares):.0f}"
    return f"; {low if low == high else f'{low} to {high}'}% of the gates had settled"


def prunings(model: StudiedModel, *, all_kinds: bool) -> list[Pruning]:
    """The trade-off of one kind of heads, or of all kinds together, that has models by gates; the first of several."""
    rows = [_pruning(tradeoff, model.first(RolesFound)) for tradeoff in model.every(Tradeoff)]
    return [row for row in rows if (not row.kinds) == all_kinds and row.models][:1]


def _pruning(tradeoff: Tradeoff, roles: RolesFound | None) -> Pruning:
    points = [point for point in tradeoff.points if point.keep < tradeoff.gated]
    ways = sorted({point.way for point in points if point.way.split("/")[0] == "l0"}, key=len)
    by_head = tradeoff.whole_roles or (roles.roles if roles else {})
    return Pruning(
        kinds=() if tradeoff.pruned == ALL_KINDS else tuple(tradeoff.pruned.removesuffix(" heads").split(" and ")),
        heads=_all_heads(tradeoff),
        roles=role_names(by_head),
        models=tuple(point for point in points if point.way in ways[:1]),
        budgeted=tradeoff.gated,
        trees=has_trees(tradeoff.looked if tradeoff.whole_roles else roles),
    )


def has_trees(measured: LookedAt | RolesFound | None) -> bool:
    """Whether the sentences that roles were measured on had trees."""
    return measured is not None and measured.trees > 0


WITHOUT_TREES = "; without trees no head is known to be syntactic, so that the claim cannot fail"


def unless_refuted(holds: bool | None, trees: Iterable[bool]) -> tuple[bool | None, str]:
    """The verdict with a note: open instead of refuted if some roles were measured on sentences without trees."""
    return (holds, "") if all(trees) else (holds or None, WITHOUT_TREES)


def _all_heads(tradeoff: Tradeoff) -> tuple[str, ...]:
    """Names of the whole model's heads; none if an older record of a model that was pruned before lacks some."""
    heads = tradeoff.known_heads
    return heads if len(heads) == sum(tradeoff.heads_by_site.values()) else ()


def role_names(by_head: Mapping[str, Sequence[HeldRole | Evidence]]) -> dict[str, frozenset[str]]:
    return {head: frozenset(item.role for item in held) for head, held in by_head.items()}


def of_kind(heads: Iterable[str], *kinds: str) -> list[Head]:
    return [head for head in map(Head.parse, heads) if head.kind in kinds]


def with_known_role(heads: Iterable[str], pruning: Pruning, by_head: Iterable[str]) -> list[Head]:
    """The heads of the pruned kinds whose roles were looked at: of an encoder-decoder those of the encoder.

    by_head: names of heads with the result of looking.
    """
    looked_at = {Head.parse(name).kind for name in by_head}
    return of_kind(heads, *looked_at.intersection(pruning.kinds))
