"""The result of `headcount prune`: a pruned model, how it was made, and its costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headcount.record.result import MeasuredOn, Quality, Result, Step
from headcount.record.results.inspect import Cost
from headcount.record.results.train import EpochMeasured
from headcount.statistics import Comparison


@dataclass(frozen=True)
class Qualities:
    """Quality of the whole model, of the pruned one before tuning, and at the end; None if not measured."""

    before: Quality | None = None
    cut: Quality | None = None
    after: Quality | None = None


@dataclass(frozen=True)
class Seconds:
    """Time of pruning, without measuring."""

    choosing: float  # choosing heads and fitting the compensation
    tuning: float
    total: float


@dataclass(frozen=True)
class Costs:
    """Costs of one example in the whole and in the pruned model."""

    before: Cost
    after: Cost


@dataclass(frozen=True)
class BudgetMet:
    """Step from which on the number of open gates meets the budget."""

    step: int
    settled: float  # share of the gates that had settled then


@dataclass(frozen=True)
class GateStep:
    """Gates at one step of training."""

    step: int
    loss: float
    open: int  # gates
    settled: float  # share of the gates whose mean is near 0 or 1
    expected: float | None = None  # expected number of open gates (l0)
    penalties: tuple[float, ...] | None = None  # lambda for each budget (l0)
    temperature: float | None = None  # (subset)


@dataclass(frozen=True)
class GateSettings:
    """Settings of gate training, including defaults; None if the chooser has no such setting."""

    rate: float  # learning rate of the gates
    penalty: float | None = None  # fixed lambda, if given
    variant: str | None = None  # of Hard Concrete gates
    straight_through: bool | None = None
    hot: float | None = None  # first temperature
    cold: float | None = None  # last temperature
    annealed: float | None = None  # share of the steps over which the temperature falls


TUNED = "after tuning"  # the last stage
SETTLED = 0.9  # share of settled gates from which training of gates counts as converged


@dataclass(frozen=True, kw_only=True)
class GatesEnd:
    """State of the gates after training."""

    settled: float  # share of the gates whose mean is within .05 of 0 or 1
    reached: BudgetMet | None  # None if the gates did not meet the budget by themselves
    cut_by_rank: int  # heads that were decided by rank, not by their gates


@dataclass(frozen=True, kw_only=True)
class Gates(GatesEnd):
    """Trained gates."""

    values: Mapping[str, float]  # head -> logit, higher is more open
    means: Mapping[str, float]  # head -> mean of its gate
    trace: tuple[GateStep, ...]
    settings: GateSettings


@dataclass(frozen=True)
class HardConcrete:
    """The distribution of a gate with one log_a."""

    log_a: float
    beta: float
    low: float  # ends of the stretched distribution
    high: float
    zero: float  # probability of exactly 0
    one: float  # probability of exactly 1
    mean: float


@dataclass(frozen=True)
class SearchStep:
    """One step of a greedy search."""

    removed_heads: tuple[str, ...]
    losses: Mapping[str, float]  # candidate -> mean loss of an example without it
    seconds: float


@dataclass(frozen=True)
class ChoiceDetails:
    """Details of a choice; None if the chooser has no such details."""

    gates: Gates | None = None  # l0 and subset
    hard_concrete: tuple[HardConcrete, ...] | None = None  # l0: distributions of the paper's Figure 6
    search: tuple[SearchStep, ...] | None = None  # greedy
    rearranged: tuple[str, ...] | None = None  # fisher: heads whose choice changed by rearrangement


@dataclass(frozen=True)
class SiteFit:
    """Quality of the compensation of a site: shares of the full site's variance explained on held-out rows.

    Null if no rows are held out, as of a single example.
    """

    rho: float | None  # strength of the ridge; None without a ridge or change
    unchanged: bool  # no change was best: the strength is infinite
    explained: float
    explained_without: float  # without compensation


@dataclass(frozen=True)
class CompensationFit:
    """Compensation for the removed heads."""

    method: str
    data: str  # hash of the calibration data
    rows: int  # tokens that it was fitted on
    sites: Mapping[str, SiteFit]
    quality: Quality | None = None  # of the compensated model


@dataclass(frozen=True)
class TrainingStage:
    """One run of training."""

    trained: str  # description of the trained weights
    steps: int
    seconds: float
    epochs: tuple[EpochMeasured, ...]
    rate: float | None  # None: that of Vaswani et al. 2017
    warmup: int


@dataclass(frozen=True, kw_only=True)
class Pruning(Result):
    """The removed heads, and the quality and costs of the pruned model."""

    method: str  # name of the chooser
    pipeline: str  # all stages as text
    removed_heads: tuple[str, ...]
    num_heads: int  # of the whole model
    kept_by_kind: Mapping[str, int]  # kind -> number of remaining heads
    heads: tuple[str, ...]  # names of the remaining heads
    verified: bool  # the masked and the pruned model were compared and agree
    quality: Qualities
    statistics: Mapping[str, tuple[tuple[float, ...], ...]]  # before, cut, after -> statistics of each example
    seconds: Seconds
    cost: Costs
    choice_details: ChoiceDetails
    metric: str | None = None
    higher_is_better: bool | None = None
    change: Comparison | None = None  # quality at the end less that of the whole model, paired by example
    measured_on: MeasuredOn | None = None  # None if quality was not measured
    curve: tuple[Step, ...] | None = None  # quality after each step, with heads masked
    compensation: CompensationFit | None = None
    training: Mapping[str, TrainingStage] = field(default_factory=dict)  # gates, tuning
    fault: str | None = None  # fault found by verification
    loaded_by: str | None = None  # what loads the saved model: stock, standalone or headcount

    @property
    def stages(self) -> dict[str, Quality]:
        """Quality at every stage that was measured, in order, by what had been done to the model."""
        measured = {
            "whole model": self.quality.before,
            "heads masked": self._masked,
            self._cut: self.quality.cut,
            TUNED: self.quality.after if "tuning" in self.training else None,
        }
        return {name: quality for name, quality in measured.items() if quality is not None}

    @property
    def from_random(self) -> bool:
        """Whether training began with new random weights: before gates if there are any, else after removal."""
        return self.pipeline.endswith("/scratch")

    @property
    def named_heads(self) -> bool:
        """Whether heads were given by name, so that it is unknown what they were chosen on; not those of a control."""
        return self.method == "given" and not self.from_random

    @property
    def stage_of_steps(self) -> str:
        """What had been done to the model at the steps of its curve."""
        compensated = self.compensation is not None and self._masked is None
        return self._cut if compensated else "heads masked"

    @property
    def _cut(self) -> str:
        """What had been done to the model before tuning."""
        if self.from_random and "gates" not in self.training:
            return "new random weights"
        return f"after {self.compensation.method}" if self.compensation else "heads removed"

    @property
    def _masked(self) -> Quality | None:
        """Quality with the heads masked, if compensation makes it differ from that of the pruned model."""
        cut = self.quality.cut
        if self.compensation is None or cut is None or not self.curve:
            return None
        last = self.curve[-1]
        masked = Quality(cut.metric, last.value, last.low, last.high)
        compensated = len(self.curve) == 2 and masked == cut  # a search has one step; those of scores are all masked
        return None if compensated else masked

    @property
    def gates(self) -> Gates | None:
        return self.choice_details.gates

    @property
    def hard_concrete(self) -> tuple[HardConcrete, ...] | None:
        return self.choice_details.hard_concrete


RESULT = Pruning
