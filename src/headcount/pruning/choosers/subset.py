"""subset: gates that keep exactly a given number of heads learn which ones (Li, Cotterell, Sachan 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headcount.errors import UsageError
from headcount.options import option
from headcount.pruning.pipeline import Budgets, Choice, Data, Execution, Gated, Pipeline

if TYPE_CHECKING:
    from torch import nn

    from headcount.training.annealing import Annealing

# As in the paper: the first temperature and the rate of the gates, for translation and for other tasks.
_TRANSLATION, _OTHERS = (0.1, 0.2), (1000.0, 0.5)


@dataclass(frozen=True)
class Subset(Gated):
    """A relaxed choice of a fixed number of heads, with a falling temperature."""

    about: ClassVar[str] = "a relaxed choice of exactly --keep heads learns with the weights"

    pipelined: bool = option(False, "Freeze the weights while the choice is learned.")
    straight_through: bool = option(False, "Use gates of 0 and 1 with relaxed gradients; a control.")
    hot: float | None = option(
        None, "First temperature. Default: 0.1 for translation, else 1000.", type=float, minimum=0.0, above=True
    )
    cold: float = option(1e-8, "Last temperature.", minimum=0.0, above=True)
    annealed: float = option(
        0.5, "Share of the steps over which the temperature falls.", minimum=0.0, above=True, maximum=1.0
    )

    def check_budget(self, keep: Budgets | None) -> None:
        if keep is None:
            raise UsageError("subset needs a budget (--keep): the number of heads to keep.")

    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        from headcount.probes.subset import SubsetGates
        from headcount.pruning.gate_learning import GateLearning, gate_steps, head_counts
        from headcount.record.results.prune import GateSettings
        from headcount.training.annealing import Annealing

        keep, steps = head_counts(model, pipeline.keep, pipeline.kinds), gate_steps(self.steps, pipeline)
        usual = _TRANSLATION if data.train is not None and data.train.writes else _OTHERS
        hot = self.hot if self.hot is not None else usual[0]
        rate = self.gate_rate if self.gate_rate is not None else usual[1]

        def begin(live: nn.Module) -> Annealing:
            gates = SubsetGates(
                live, keep=keep if keep is not None else 0, kinds=pipeline.kinds, straight_through=self.straight_through
            )
            return Annealing(
                gates, steps=steps, seed=pipeline.seed, hot=hot, cold=self.cold, share=self.annealed, rate=rate
            )

        settings = GateSettings(
            rate, straight_through=self.straight_through, hot=hot, cold=self.cold, annealed=self.annealed
        )
        learning = GateLearning(begin, steps, "subset, learning gates", settings, weights=not self.pipelined)
        return learning.choose(model, data, pipeline, execution)


CHOOSER = Subset
