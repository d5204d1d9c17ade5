"""The result of `headcount score`: one number per head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import Result
from headcount.statistics import Interval


@dataclass(frozen=True)
class Cut:
    """Relevance of the predictions that reaches one cut through the model."""

    arriving: float  # share that arrives
    absorbed: float  # by constants above the cut, as a share of the predictions' size
    error: float  # unexplained share


@dataclass(frozen=True)
class Conservation:
    """Conservation of relevance from the predictions to the inputs."""

    examples: int
    predictions: int
    absorbed: float  # by constants in all
    cuts: Mapping[str, Cut]  # from the predictions down

    @property
    def error(self) -> float:
        """The largest error of a cut."""
        return max(cut.error for cut in self.cuts.values())


@dataclass(frozen=True)
class Scoring(Result):
    """The score of every head by one method; higher means keep."""

    method: str
    scores: Mapping[str, float]
    ranks: Mapping[str, int]  # from 1, the highest score
    low: Mapping[str, float] | None = None  # 95% interval, if the score has one
    high: Mapping[str, float] | None = None
    conservation: Conservation | None = None  # of relevance
    leads: Mapping[str, Interval] | None = None  # of relevance: over the highest other head of its layer, same examples
    left_out: Mapping[str, float] | None = None  # of confidence: the share of attention on special tokens


RESULT = Scoring
