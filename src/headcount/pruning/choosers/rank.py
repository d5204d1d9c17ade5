"""rank: heads go in the order of a score, a few at a time (Michel et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headcount.pruning.options import option
from headcount.pruning.pipeline import Choice, Data, Execution, Pipeline
from headcount.pruning.shared import ByNumbers
from headcount.selection.budget import Budget

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Rank(ByNumbers):
    """The lowest scores go; quality is measured after each step."""

    about: ClassVar[str] = "any score: the lowest go, a few at a time"
    usually_tuned: ClassVar[bool] = True

    score: str = "gradient"
    score_options: Mapping[str, Any] = field(default_factory=dict)
    recompute: bool = option(False, "Score again after each step, on what is left.")
    step: float = option(0.1, "Heads to mask at a time.", minimum=0.0, above=True, maximum=1.0, share=True)
    unit: Literal["head", "group"] = option(
        "head", "What goes at a time: heads, or whole groups that share a key/value head.", choices=("head", "group")
    )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Rank:
        """Options that are not of ranking are the score's."""
        names = {*cls.limits(), "score"}
        score_options = {name: value for name, value in values.items() if name not in names}
        return cls(**{name: value for name, value in values.items() if name in names}, score_options=score_options)

    @property
    def name(self) -> str:
        return "random" if self.score == "random" else f"rank-{self.score}"

    @property
    def random(self) -> bool:
        return self.score == "random"

    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        from headcount.pruning.ranking import Order, Restrictions, counts_to, group_size, ranked_masks
        from headcount.pruning.run import counted_heads

        heads, budget = counted_heads(model, pipeline.kinds), pipeline.keep
        size = group_size(model, pipeline.kinds, self.unit)
        keep = budget.of(len(heads)) if isinstance(budget, Budget) else len(heads)
        if isinstance(budget, Budget) and budget.share is not None:
            keep = size * round(keep / size)
        gone = len(heads) - keep
        # Only the last step must spread evenly over layers: those on the way may not be able to.
        counts = [0, gone] if self.rule == "uniform" else counts_to(len(heads), gone, self.step, size=size)
        seeded = {"seed": pipeline.seed} if self.random else {}
        order = Order(self.score, self.recompute, tuple({**seeded, **self.score_options}.items()))
        restrictions = Restrictions(pipeline.kinds, self.rule, self.at_least, self.unit)
        masks = []
        for number, mask in enumerate(ranked_masks(model, data.choosing, order, counts, restrictions), start=1):
            execution.progress(f"ranking by {self.score}", number, len(counts))
            masks.append(mask)
        return Choice(masks[-1], model, masks=masks[1:])


CHOOSER = Rank
