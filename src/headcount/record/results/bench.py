"""The result of `headcount bench`: how fast models are, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headcount.record.result import MeasuredOn, Quality, Result


@dataclass(frozen=True)
class Timing:
    """One model at one setting."""

    model: str
    what: str  # reading or writing
    batch: int
    length: int  # tokens of the input
    seconds: float  # median of a run
    shortest: float
    longest: float
    per_second: float  # examples read, or tokens written
    faster: float  # times as fast as the first model, from paired repeats
    low: float  # 95% interval of that
    high: float


@dataclass(frozen=True)
class Size:
    """Size of a model, and of its cache while generating."""

    stated_heads: int | None  # None for an export
    parameters: int | None
    weight_bytes: int  # of an export: on disk
    cache_bytes: int | None  # keys and values of one example of `length` tokens
    flops: int | None  # of one forward pass; None if they could not be counted
    length: int

    def smaller_than(self, other: Size) -> bool:
        """Whether it has fewer heads or, with as many or an unknown number, fewer bytes of weights."""
        heads, other_heads = self.stated_heads, other.stated_heads
        if heads is None or other_heads is None or heads == other_heads:
            return self.weight_bytes < other.weight_bytes
        return heads < other_heads

    def fewer_heads_than(self, other: Size) -> bool:
        """Whether it is known to have fewer heads."""
        heads, other_heads = self.stated_heads, other.stated_heads
        return heads is not None and other_heads is not None and heads < other_heads


@dataclass(frozen=True)
class ComparedQuality(Quality):
    """Quality of one model, and how far it is from that of the first model on the same examples."""

    difference: float
    difference_low: float  # 95% interval over examples, paired
    difference_high: float


@dataclass(frozen=True)
class Speed(Result):
    """The first model against each of the others."""

    rows: tuple[Timing, ...]
    models: Mapping[str, Size]
    threads: int
    device: str
    quality: Mapping[str, ComparedQuality] = field(default_factory=dict)  # by model, if there was data
    measured_on: MeasuredOn | None = None  # of quality; None if no model says what its heads were chosen on

    @property
    def others(self) -> list[Timing]:
        """Rows of all models except the first."""
        return [row for row in self.rows if row.model != self.reference]

    @property
    def reference(self) -> str:
        """The first model, to which all speeds are relative."""
        return self.rows[0].model

    @property
    def smaller(self) -> list[Timing]:
        """Rows of models with fewer heads, or fewer bytes of weights, than the first."""
        return [row for row in self.others if self.models[row.model].smaller_than(self.models[self.reference])]

    @property
    def without_heads(self) -> list[Timing]:
        """Rows of models that are known to have fewer heads than the first."""
        return [row for row in self.others if self.models[row.model].fewer_heads_than(self.models[self.reference])]


RESULT = Speed
