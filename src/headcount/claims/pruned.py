"""Pruned models of a trade-off record: which heads gates leave. The one place that knows the keys of such records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headcount.claims.studied import StudiedModel
from headcount.heads import PAPER_ROLES, Head
from headcount.record.codec import encode
from headcount.record.results.roles import RolesFound
from headcount.statistics import Interval

ALL_KINDS = "heads of all kinds"
SETTLED = 0.9  # share of gates that are within .05 of 0 or 1


@dataclass(frozen=True)
class PrunedModel:
    """One model by gates, with so many heads left, for one seed."""

    keep: int
    seed: int
    heads: tuple[str, ...]
    roles: Mapping[str, frozenset[str]]  # of the heads left, measured without the others
    settled: float  # share of the gates; NaN where it was not recorded


@dataclass(frozen=True)
class ScratchPair:
    """A pruned model beside one trained from random weights with the same heads."""

    keep: int
    seed: int
    trained: Interval
    scratch: Interval


@dataclass(frozen=True)
class Pruning:
    """The models of one trade-off that gates made."""

    kind: str  # that lost heads; empty: all kinds
    metric: str
    sites: Mapping[str, int]  # site -> heads of the whole model
    roles: Mapping[str, frozenset[str]]  # of the whole model's heads
    models: tuple[PrunedModel, ...]
    pairs: tuple[ScratchPair, ...]
    scratch_steps: int
    budgeted: int  # heads that might go

    @property
    def heads(self) -> list[str]:
        """Of the whole model."""
        return [f"{site}.{index}" for site, count in self.sites.items() for index in range(count)]

    @property
    def marked(self) -> set[str]:
        """Heads with a role of the paper."""
        return {head for head, names in self.roles.items() if names & set(PAPER_ROLES)}

    @property
    def unsettled(self) -> str:
        """What to know of gates that were not done; empty where all had settled."""
        least = min((model.settled for model in self.models if model.settled == model.settled), default=1.0)
        return "" if least >= SETTLED else f"; only {100 * least:.0f}% of the gates had settled"


def prunings(model: StudiedModel, *, all_kinds: bool) -> list[Pruning]:
    """Trade-offs of one kind of heads, or of all kinds together, that have models by gates."""
    rows = [
        _pruning(encode(record.parts), model.first(RolesFound))
        for record in model.records
        if record.study == "tradeoff"
    ]
    return [row for row in rows if (not row.kind) == all_kinds and row.models]


def _pruning(parts: Mapping[str, Any], roles: RolesFound | None) -> Pruning:
    points = [point for point in parts["tradeoff"] if point["keep"] < parts["gated"]]
    ways = sorted({point["way"] for point in points if point["way"].split("/")[0] == "l0"}, key=len)
    kind = "" if parts["pruned"] == ALL_KINDS else parts["pruned"].removesuffix(" heads")
    return Pruning(
        kind=kind,
        metric=parts["metric"],
        sites=parts.get("sites") or {},
        roles=_whole_roles(parts, roles),
        models=tuple(_model(point) for point in points if point["way"] in ways[:1]),
        pairs=tuple(_pair(row) for row in parts.get("all_kinds") or () if row.get("scratch")),
        scratch_steps=(parts.get("steps") or {}).get("scratch", 0),
        budgeted=parts["gated"],
    )


def _whole_roles(parts: Mapping[str, Any], roles: RolesFound | None) -> dict[str, frozenset[str]]:
    if parts.get("whole_roles"):
        return _role_names(parts["whole_roles"])
    by_head = roles.roles if roles else {}
    return {head: frozenset(item.role for item in held) for head, held in by_head.items()}


def _role_names(by_head: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, frozenset[str]]:
    return {head: frozenset(item["role"] for item in held) for head, held in by_head.items()}


def _model(point: Mapping[str, Any]) -> PrunedModel:
    settled = (point.get("gates") or {}).get("settled")
    return PrunedModel(
        keep=point["keep"],
        seed=point["seed"],
        heads=tuple(point["heads"]),
        roles=_role_names(point.get("roles") or {}),
        settled=float("nan") if settled is None else settled,
    )


def _pair(row: Mapping[str, Any]) -> ScratchPair:
    trained, scratch = (_quality(row[name]) for name in ("trained", "scratch"))
    return ScratchPair(row["keep"], row["seed"], trained, scratch)


def _quality(quality: Mapping[str, Any]) -> Interval:
    ends = (quality.get(end) for end in ("low", "high"))
    return Interval(quality["value"], *(float("nan") if end is None else end for end in ends))


def of_kind(heads: Sequence[str], kind: str) -> list[Head]:
    return [head for head in map(Head.parse, heads) if head.kind == kind]
