"""l0: Hard Concrete gates learn which heads to keep while the model adapts (Voita et al. 2019, section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from headcount.errors import UsageError
from headcount.options import option
from headcount.pruning.pipeline import Budgets, Choice, Data, Execution, Gated, Pipeline

if TYPE_CHECKING:
    from torch import nn

    from headcount.training.penalty import Penalty

_GATE_RATE = 0.1


@dataclass(frozen=True)
class L0(Gated):
    """Gates with an L0 penalty. Lambda is adapted to meet a budget exactly, or is fixed."""

    about: ClassVar[str] = "Hard Concrete gates learn with the weights"

    penalty: float | None = option(
        None,
        "Penalty lambda, instead of --keep; several values, separated by commas, are a sweep.",
        type=float,
        minimum=0.0,
        several=True,
    )
    variant: str = option("default", "Form of the gates.", choices=("default", "paper", "voita2019-code"))

    def check_budget(self, keep: Budgets | None) -> None:
        if (keep is None) == (self.penalty is None):
            raise UsageError("l0 needs either a budget (--keep) or a penalty, the factor lambda (--penalty).")

    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        from headcount.probes.gated import VARIANTS, HardConcreteGates
        from headcount.pruning.gate_learning import GateLearning, gate_steps, head_counts
        from headcount.record.results.prune import ChoiceDetails, GateSettings
        from headcount.training.penalty import Penalty

        keep, steps = head_counts(model, pipeline.keep, pipeline.kinds), gate_steps(self.steps, pipeline)
        rate = self.gate_rate or _GATE_RATE

        def begin(live: nn.Module) -> Penalty:
            gates = HardConcreteGates(live, kinds=pipeline.kinds, variant=self.variant, seed=pipeline.seed)
            return Penalty(gates, steps=steps, keep=keep, factor=self.penalty, rate=rate, seed=pipeline.seed)

        settings = GateSettings(rate, penalty=self.penalty, variant=self.variant)
        choice = GateLearning(begin, steps, "l0, learning gates", settings).choose(model, data, pipeline, execution)
        distributions = VARIANTS[self.variant].shape.figure_6()
        return replace(choice, details=replace(choice.details or ChoiceDetails(), hard_concrete=distributions))


CHOOSER = L0
