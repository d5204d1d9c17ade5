"""The result of `headcount study rules`: how far rules of relevance agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import Result
from headcount.record.results.score import Conservation
from headcount.statistics import Correlation


@dataclass(frozen=True)
class Agreement:
    """Rank correlation of two rules."""

    rule: str
    other: str
    spearman: Mapping[str, Correlation]  # kind, or all -> correlation over its heads

    def __str__(self) -> str:
        return f"{self.rule} / {self.other}"


@dataclass(frozen=True)
class Rules(Result):
    """Scores by every rule, and their agreement pair by pair."""

    by_rule: Mapping[str, Mapping[str, float]]  # rule -> head -> score
    conservation: Mapping[str, Conservation]  # rule -> conservation of relevance
    agreements: tuple[Agreement, ...]
    refused: Mapping[str, str]  # rule -> why it does not support this model


RESULT = Rules
