"""Result: the base class of results, and the parts that several results share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from headcount.statistics import Interval


@dataclass(frozen=True)
class Result:
    """Result of one study. VERSION increases when an old reader would misread the new form."""

    VERSION: ClassVar[int] = 1


@dataclass(frozen=True)
class Texts:
    """Texts that heads were chosen, trained or measured on."""

    split: str | None  # None if the data have no splits
    examples: int | None  # number of texts; None if only batches are known


@dataclass(frozen=True)
class MeasuredOn(Texts):
    """What a model was measured on, and whether its heads were chosen on other texts."""

    chosen_on: tuple[Texts, ...]  # everything that heads were chosen, calibrated or trained on
    overlap: int | None  # number of measured examples that are among those; None if unknown
    held_out: bool | None  # None if unknown

    @property
    def caveat(self) -> str:
        """The end of a sentence about a quality: heads were chosen on the same texts; empty if not, or unknown."""
        if self.held_out is not False:
            return ""
        if self.all_seen:
            return ", which is optimistic: it was measured on the texts that heads were chosen on"
        of_texts = f"heads were chosen on {self.overlap} of the {self.examples} texts that it was measured on"
        return f", which is optimistic: {of_texts}" if self.much_seen else f"; {of_texts}"

    @property
    def all_seen(self) -> bool:
        """Whether heads were chosen on every example that they are measured on."""
        return self.held_out is False and self.overlap in (None, self.examples)

    @property
    def much_seen(self) -> bool:
        """Whether heads were chosen on more than a tenth of these examples: too many to decide a claim on.

        Orders of 20 equal heads that were chosen on 100, 90, 50, 10 and 0% of 400 examples look better than random ones
        in 75, 59, 18, 4 and 2% of cases.
        """
        if self.held_out is not False or self.overlap is None or self.examples is None:
            return self.held_out is False
        return self.overlap > 0.1 * self.examples

    @property
    def doubt(self) -> tuple[int, float]:
        """For an order of results: texts that are held out, those of which it is unknown, those that were seen."""
        if self.held_out is not False:
            return (0 if self.held_out else 1), 0.0
        return 2, 1.0 if self.all_seen else (self.overlap or 0) / (self.examples or 1)


@dataclass(frozen=True)
class Quality:
    """A metric with its 95% interval over examples."""

    metric: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PruningStep:
    """A model without some of its heads."""

    removed: int  # number of removed heads
    share: float  # of the heads that may be removed
    value: float  # of what is measured
    low: float  # 95% interval over examples
    high: float


@dataclass(frozen=True)
class Step(PruningStep):
    """A model with some of its heads masked."""

    kept_by_kind: Mapping[str, int]  # kind -> number of remaining heads
    heads: tuple[str, ...]  # names of the remaining heads
    kept: Interval | None = (
        None  # share of the score with all heads that remains, paired by example; an upper end of null has no limit
    )
    tied: int | None = None  # removed heads with the score of one that is kept; None: heads have none, or unknown
    change: Interval | None = None  # from the value with all heads, paired by example; null in older records
