"""The result of `headcount prune` with several penalties: a pruned model for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import MeasuredOn, Result
from headcount.record.results.prune import Pruning, Qualities


@dataclass(frozen=True)
class SweepPoint:
    """One pruned model."""

    kept_by_kind: Mapping[str, int]  # kind -> number of remaining heads
    heads: tuple[str, ...]  # names of the remaining heads
    quality: Qualities
    settled: float | None = None  # share of the gates that had settled
    removed_heads: tuple[str, ...] = ()  # empty in records of an earlier version

    @classmethod
    def of(cls, model: Pruning) -> SweepPoint:
        settled = model.gates.settled if model.gates else None
        return cls(model.kept_by_kind, model.heads, model.quality, settled, model.removed_heads)


@dataclass(frozen=True)
class Sweep(Result):
    """Models that differ in one option."""

    sweep: Mapping[str, SweepPoint]  # value of the option -> model
    method: str  # name of the chooser
    elsewhere: tuple[str, ...]  # values that other processes work on
    measured_on: MeasuredOn | None = None

    @property
    def known_heads(self) -> tuple[str, ...]:
        """Names of all heads of the whole model; empty if no model names its removed heads."""
        point = next((point for point in self.sweep.values() if point.removed_heads), None)
        return (*point.heads, *point.removed_heads) if point else ()


RESULT = Sweep
