"""Result: the base of what a study measures, and the pieces that several results have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Result:
    """What one study measured. VERSION rises when a reader of the old form would misread the new one."""

    VERSION: ClassVar[int] = 1


@dataclass(frozen=True)
class Texts:
    """Texts that something was done on."""

    split: str | None  # None where the data have no splits
    examples: int | None  # how many; None where only batches are known


@dataclass(frozen=True)
class MeasuredOn(Texts):
    """What a model was measured on, and whether its heads were chosen on other texts."""

    chosen_on: tuple[Texts, ...]  # everything that heads were chosen, calibrated or trained on
    overlap: int | None  # examples that are among those; None where it cannot be told
    held_out: bool | None  # None where it cannot be told


@dataclass(frozen=True)
class Quality:
    """A metric with its 95% interval over examples."""

    metric: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Step:
    """A model with some of its heads masked."""

    removed: int  # number of heads gone
    share: float  # of the heads that may go
    value: float  # of the metric
    low: float  # 95% interval over examples
    high: float
    kept_by_kind: Mapping[str, int]  # kind -> heads left
    heads: tuple[str, ...]  # names of the heads left
