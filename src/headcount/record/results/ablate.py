"""The result of `headcount ablate`: the loss of quality without each head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import MeasuredOn, Result
from headcount.statistics import Correlation, examples_for


@dataclass(frozen=True, kw_only=True)
class Effect:
    """How a model with heads masked differs from the unmasked one."""

    value: float  # the metric with the heads masked, on the examples of this effect
    difference: float  # masked minus unmasked
    low: float  # 95% interval of the difference
    high: float
    p: float  # two-sided
    corrected: float  # p after Holm's correction for all heads
    examples: int  # that it was measured on


@dataclass(frozen=True, kw_only=True)
class BestAlone(Effect):
    """The head that does best when all others of its site are masked."""

    head: str


@dataclass(frozen=True)
class Summary:
    """How many heads matter."""

    num_heads: int
    significant: int  # p below alpha
    significant_and_better_without: int
    significant_corrected: int  # corrected p below alpha
    significant_corrected_and_better_without: int


@dataclass(frozen=True)
class Transfer:
    """The same on a second data set, and how the two agree."""

    value: float  # of the metric with all heads
    pearson: Correlation  # of the differences on both data sets
    spearman: Correlation
    one_out: Mapping[str, Effect]


@dataclass(frozen=True)
class Ablation(Result):
    """Every head masked alone; every head left alone in its site; the same on other data."""

    metric: str
    higher_is_better: bool
    distance: bool  # the metric is a distance from the unmasked model: never negative, so that p says nothing
    value: float  # of the metric with all heads
    alpha: float
    one_out: Mapping[str, Effect]  # head -> effect of masking it
    summary: Summary
    all_but_one: Mapping[str, BestAlone] | None = None  # site -> its best head; see alone_held_out
    other: Transfer | None = None  # a second data set
    all_but_one_chosen_elsewhere: Mapping[str, BestAlone] | None = None  # the same heads, measured on the second
    alone_held_out: bool = False  # whether best heads were chosen on other examples, not on the first data set itself
    measured_on: MeasuredOn | None = None  # of a pruned model: whether its heads were chosen on other texts

    @property
    def examples_lacking(self) -> int:
        """The number of examples needed for any corrected p to fall below alpha; 0 if there are as many."""
        needed = examples_for(len(self.one_out), self.alpha)
        return needed if max(effect.examples for effect in self.one_out.values()) < needed else 0

    @property
    def stopped_early(self) -> bool:
        """Whether some effect is of fewer examples than `value`: then its own value cannot be compared with that."""
        gaps = [abs(self.value + effect.difference - effect.value) for effect in self.one_out.values()]
        return max(gaps, default=0.0) > 1e-6 * max(1.0, abs(self.value))

    def without(self, effect: Effect) -> float:
        """The metric with the heads of an effect masked, on the examples of `value`, also if the effect has fewer."""
        return self.value + effect.difference

    def harm(self, effect: Effect) -> float:
        """How much worse the model is without a head; positive is worse."""
        return -effect.difference if self.higher_is_better else effect.difference

    def worst(self, effects: Mapping[str, Effect]) -> list[str]:
        """Names of the effects that harm most: several if they tie."""
        most = max(map(self.harm, effects.values()))
        return [name for name, effect in effects.items() if self.harm(effect) == most]

    def harms_most(self, name: str, effects: Mapping[str, Effect]) -> bool:
        """Whether one effect harms more than all others for certain: one of ten that are alike always harms most."""
        ends = {
            key: (-row.high, -row.low) if self.higher_is_better else (row.low, row.high) for key, row in effects.items()
        }
        return all(ends[name][0] > high for key, (_, high) in ends.items() if key != name)


RESULT = Ablation
