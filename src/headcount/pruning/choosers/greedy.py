"""greedy: remove heads one after the other, each time the one whose compensated removal increases the loss least."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from headcount.errors import UsageError
from headcount.options import option
from headcount.pruning.pipeline import Choice, Chooser, Data, Execution, Pipeline

if TYPE_CHECKING:
    from torch import nn

    from headcount.heads import HeadGrid
    from headcount.pruning.trail import Trail
    from headcount.tasks.task import Task

CANDIDATES = 6  # at every step; the cheap score only has to rank the best head among these


@dataclass(frozen=True)
class Greedy(Chooser):
    """A greedy search with compensation in the loop, then on the data that the compensation is fitted on."""

    about: ClassVar[str] = "one head after the other, compensation in the loop"
    any_budget: ClassVar[bool] = True
    resumes: ClassVar[bool] = True
    usual_compensation: ClassVar[str] = "lstsq"

    candidates: int = option(CANDIDATES, "Heads to try at each step.", minimum=1)
    group: int = option(1, "Heads to remove at each step.", minimum=1)

    def data_of(self, data: Data, pipeline: Pipeline) -> Task:
        return data.choosing if pipeline.compensate == "none" else data.calibrating

    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        from headcount.pruning.search import Search
        from headcount.pruning.trail import follow
        from headcount.record.results.prune import ChoiceDetails
        from headcount.sites.locate import locate
        from headcount.surgery.price import in_heads

        if not replace(pipeline.shape, unit="head").nested:  # one head after the other may pass by all allowed numbers
            heads_left = in_heads(
                model, pipeline.budget, kinds=pipeline.kinds, length=pipeline.length, shape=pipeline.shape,
                add_bias=pipeline.add_bias, folder=execution.folder,
            )  # fmt: skip
            pipeline = replace(pipeline, keep=heads_left)
        heads, budget = locate(model).of_kinds(pipeline.kinds), pipeline.budget
        price = execution.price(model, pipeline)
        limit = price.limit(budget) if price is not None else 0.0
        if price is not None:
            price.check(budget, pipeline.kinds)  # fails before the search
        keep = budget.of(len(heads)) if price is None else None
        search = Search(
            model, self.data_of(data, pipeline), kinds=pipeline.kinds, compensate=pipeline.compensate,
            add_bias=pipeline.add_bias, candidates=self.candidates, shape=pipeline.shape, keep=keep,
        )  # fmt: skip
        gone = len(heads) - (keep or 0)

        def met(mask: HeadGrid) -> bool:
            if price is None:
                return len(mask) - len(mask.kept) == gone
            return search.shaped and price(mask) <= limit

        def reached(mask: HeadGrid) -> bool:
            execution.progress("taking heads away", len(mask) - len(mask.kept), gone)
            return met(mask)

        sizes = [] if met(search.mask) else [self.group] * gone
        steps = follow(self._trail(pipeline, execution, keep), search, sizes, reached=reached)
        if not met(search.mask):
            removed = sum(len(step.removed_heads) for step in steps)
            raise UsageError(
                f"Only {removed} of {len(heads)} heads could be removed"
                + ("" if pipeline.shape.free else f" with {pipeline.shape.in_words()}")
                + ": the budget cannot be met."
            )
        return Choice(search.mask, model, ChoiceDetails(search=steps), seconds=sum(step.seconds for step in steps))

    def _trail(self, pipeline: Pipeline, execution: Execution, keep: int | None) -> Trail:
        """The saved steps. Searches for other budgets share them, unless a shape makes them depend on the budget."""
        from headcount.pruning.trail import Trail

        shape = "" if pipeline.shape.free else f"-{pipeline.shape}-{pipeline.keep if keep is None else keep}"
        return Trail.inside(execution.shared or execution.folder, f"{pipeline.compensate}{shape}".replace(":", "_"))


CHOOSER = Greedy
