"""The result of the study of replacements: how the ranking of heads depends on what replaces a masked head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import Result
from headcount.record.results.ablate import Effect
from headcount.statistics import Correlation


@dataclass(frozen=True)
class Replacements(Result):
    """Effects of replacing every head alone, for each replacement."""

    metric: str
    higher_is_better: bool
    value: float  # of the metric with all heads
    alpha: float
    effects: Mapping[str, Mapping[str, Effect]]  # replacement -> head -> effect
    significant: Mapping[str, int]  # replacement -> heads with a corrected p below alpha
    rank_correlations: Mapping[str, Correlation]  # zero / mean -> Spearman's r of the effects


RESULT = Replacements
