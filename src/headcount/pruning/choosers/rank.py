"""rank: remove heads in the order of a score, a few at a time (Michel et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.options import option
from headcount.pruning.pipeline import Choice, Chooser, Data, Execution, Pipeline

if TYPE_CHECKING:
    from torch import nn

    from headcount.tasks.overlap import Identified


@dataclass(frozen=True)
class Rank(Chooser):
    """Removes the heads with the lowest scores; quality is measured after each step."""

    about: ClassVar[str] = "any score: the lowest go, a few at a time"
    any_budget: ClassVar[bool] = True
    usually_tuned: ClassVar[bool] = True

    score: str = "gradient"
    score_options: Mapping[str, Any] = field(default_factory=dict)
    recompute: bool = option(False, "Score the remaining heads again after each step.")
    step: float = option(
        0.1, "Share of the heads to remove at a time, such as 10%.", minimum=0.0, above=True, maximum=1.0, share=True
    )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Rank:
        """Create the chooser; options that are not its own are passed to the score."""
        names = {*cls.limits(), "score"}
        score_options = {name: value for name, value in values.items() if name not in names}
        return cls(**{name: value for name, value in values.items() if name in names}, score_options=score_options)

    @property
    def name(self) -> str:
        return "random" if self.score == "random" else f"rank-{self.score}"

    @property
    def random(self) -> bool:
        return self.score == "random"

    def chosen_on(self, data: Data, pipeline: Pipeline) -> list[Identified]:
        from headcount.scores.score import WITHOUT_TEXT

        needed = super().chosen_on(data, pipeline)  # raises if it is missing: each step is measured on it
        return [] if self.score in WITHOUT_TEXT else needed

    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        from headcount.pruning.ranking import Order, Restrictions, counts_to, priced_masks, ranked_masks
        from headcount.selection.select import counted_layers
        from headcount.sites.locate import locate

        layers = counted_layers(locate(model).groups, pipeline.kinds, pipeline.shape)
        budget, price = pipeline.budget, execution.price(model, pipeline)
        if price is not None:
            price.check(budget, pipeline.kinds)  # fails before the heads are scored
        gone = layers.total - (layers.fitted(budget) if price is None else min(layers.counts, default=0))
        allowed = None if pipeline.shape.free else [0, *(layers.total - count for count in layers.counts)]
        counts = counts_to(layers.total, gone, self.step, allowed=allowed)
        seeded = {"seed": pipeline.seed} if self.random else {}
        order = Order(self.score, self.recompute, tuple({**seeded, **self.score_options}.items()))
        restrictions = Restrictions(pipeline.kinds, pipeline.shape)
        task = self.data_of(data, pipeline)
        ranked = (
            ranked_masks(model, task, order, counts, restrictions)
            if price is None
            else priced_masks(model, task, order, counts, restrictions, budget=budget, price=price)
        )
        masks = []
        for number, mask in enumerate(ranked, start=1):
            execution.progress(f"ranking by {self.score}", number, len(counts))
            masks.append(mask)
        return Choice(masks[-1], model, masks=masks[1:])


CHOOSER = Rank
