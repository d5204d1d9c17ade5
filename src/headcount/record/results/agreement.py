"""The result of `headcount study agreement`: how far cheap scores agree with exact ablation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import MeasuredOn, Result
from headcount.statistics import Comparison, Correlation


@dataclass(frozen=True)
class TopOverlap:
    """Of the heads that ablation ranks highest, the share that a score ranks as high."""

    share: float  # of all heads
    num_heads: int  # that are that share
    overlap: float
    chance: float  # overlap of a random order


@dataclass(frozen=True)
class OrderCost:
    """The model without the lowest heads of a score."""

    share: float  # of the heads that are gone
    removed: int  # number of removed heads
    value: float  # of the metric
    change: Comparison  # against the whole model
    against_ablation: Comparison  # against as many heads in the order of ablation


@dataclass(frozen=True)
class Agreement(Result):
    """Every score against ablation, and what pruning by it costs."""

    metric: str
    higher_is_better: bool
    num_heads: int
    measured_on: MeasuredOn
    by_method: Mapping[str, Mapping[str, float]]  # score -> head -> value
    spearman: Mapping[str, Mapping[str, Correlation]]  # score -> all, or a kind -> with ablation
    overlap: Mapping[str, tuple[TopOverlap, ...]]  # score -> for each share
    pruning: Mapping[str, tuple[OrderCost, ...]]  # score -> for each number of removed heads
    refused: Mapping[str, str]  # score -> why it cannot score this model


RESULT = Agreement
