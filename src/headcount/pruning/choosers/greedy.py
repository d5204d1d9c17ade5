"""greedy: heads go one after the other, each time those whose compensated removal hurts the loss least. No training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headcount.errors import UsageError
from headcount.pruning.options import option
from headcount.pruning.pipeline import Choice, Data, Execution, Pipeline
from headcount.pruning.shared import ByLayer
from headcount.selection.budget import Budget

if TYPE_CHECKING:
    from torch import nn

    from headcount.heads import HeadGrid

CANDIDATES = 6  # at every step; the cheap measure need only rank the best head among so many


@dataclass(frozen=True)
class Greedy(ByLayer):
    """The pipeline's compensation is in the loop; heads are searched on what it is fitted on."""

    about: ClassVar[str] = "one head after the other, compensation in the loop"
    any_budget: ClassVar[bool] = True
    resumes: ClassVar[bool] = True
    usual_compensation: ClassVar[str] = "lstsq"

    candidates: int = option(CANDIDATES, "Heads tried at each step.", minimum=1)
    group: int = option(1, "Heads of each step.", minimum=1)

    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        from headcount.pruning.run import counted_heads
        from headcount.pruning.search import Search
        from headcount.pruning.trail import Trail, follow
        from headcount.record.results.prune import ChoiceDetails
        from headcount.surgery.price import Price

        heads = counted_heads(model, pipeline.kinds)
        budget = pipeline.keep if isinstance(pipeline.keep, Budget) else Budget(share=1.0)
        price = None if budget.counts == "heads" else Price(model, budget.counts, length=pipeline.length)
        limit = price.limit(budget) if price is not None else 0.0
        search = Search(
            model, data.calibrating, kinds=pipeline.kinds, compensate=pipeline.compensate, add_bias=pipeline.add_bias,
            candidates=self.candidates,
        )  # fmt: skip
        gone = len(heads) - budget.of(len(heads)) if price is None else len(heads)

        def reached(mask: HeadGrid) -> bool:
            execution.progress("taking heads away", sum(not value for _, value in mask.items()), gone)
            return price is not None and price(mask) <= limit

        if price is not None and price(search.mask) <= limit:
            gone = 0
        folder = execution.shared or execution.folder
        trail = Trail(folder / f"greedy-{pipeline.compensate}.json" if folder else None)
        sizes = [min(self.group, gone - start) for start in range(0, gone, self.group)]
        steps = follow(trail, search, sizes, at_least=self.at_least, reached=reached)
        removed = sum(len(step.removed_heads) for step in steps)
        if removed < gone if price is None else price(search.mask) > limit:
            raise UsageError(
                f"Only {removed} of {len(heads)} heads could go, every layer keeping {self.at_least}: the budget "
                "cannot be met."
            )
        return Choice(search.mask, model, ChoiceDetails(search=steps), seconds=sum(step.seconds for step in steps))


CHOOSER = Greedy
