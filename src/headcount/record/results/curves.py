"""The result of `headcount study curves`: quality as heads are removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from headcount.record.result import MeasuredOn, Result, Step


@dataclass(frozen=True)
class Curve:
    """One curve: the order of heads, the kinds that may be removed, and the model after each step."""

    order: str
    kinds: tuple[str, ...]
    seed: int | None  # of a random order
    points: tuple[Step, ...]


@dataclass(frozen=True)
class Gain:
    """Gain of an order over the mean of the random orders after a step."""

    share: float
    value: float
    low: float  # 95% interval over examples and random orders
    high: float
    beaten: int  # random orders that are worse
    random: int  # random orders
    variance: Mapping[str, float]  # of the mean, by source: models, seeds, examples


@dataclass(frozen=True)
class Lead:
    """Mean lead of one curve over another on the same examples, over some steps."""

    first: str  # order, or kind that was pruned alone
    second: str  # "random": the mean of the random orders
    start: float  # shares of removed heads between which steps count
    end: float
    value: float  # of the metric, positive if the first is better
    low: float  # 95% interval over examples, and over random orders
    high: float
    variance: Mapping[str, float] | None = None  # of the mean, by source, if the second are the random orders


@dataclass(frozen=True)
class Curves(Result):
    """Pruning step by step, in several orders, of all kinds and of each."""

    VERSION: ClassVar[int] = 2

    metric: str
    higher_is_better: bool
    value: float  # of the metric with all heads
    measured_on: MeasuredOn
    num_heads: int
    curves: tuple[Curve, ...]
    against_random: Mapping[str, tuple[Gain, ...]]  # order -> gain after each step
    leads: tuple[Lead, ...]  # of one order over another or random ones, and of each kind alone over another
    by_kind: tuple[Curve, ...] | None = None  # each kind alone; None if not requested, or if there is only one kind


RESULT = Curves
