"""fisher: the heads with the least squared gradients, rearranged within each layer (Kwon et al. 2022). No training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from headcount.options import option
from headcount.pruning.pipeline import Choice, Chooser, Data, Execution, Pipeline

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Fisher(Chooser):
    """Search, rearrange; with the compensation `scale` the three phases of the paper."""

    about: ClassVar[str] = "Fisher information of masks, rearranged within each layer"
    any_budget: ClassVar[bool] = True

    granularity: Literal["example", "batch"] = option(
        "example",
        "Square the gradients of each example or of each batch, as the authors' code does.",
        choices=("example", "batch"),
    )
    rearrange: bool = option(
        True, "Re-choose heads within each layer after the search, so that their gradients cancel best."
    )

    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        from headcount.pruning.information import information, rearrange, search
        from headcount.record.results.prune import ChoiceDetails

        budget, information_HH = (
            pipeline.budget,
            information(model, self.data_of(data, pipeline), granularity=self.granularity),
        )
        execution.progress("Fisher information", 1, 1)
        price = execution.price(model, pipeline)
        shape = pipeline.shape
        searched = search(model, information_HH, budget, kinds=pipeline.kinds, shape=shape, price=price)
        mask = rearrange(model, information_HH, searched, shape=shape) if self.rearrange else searched
        if price is not None and mask != searched and price(mask) > price.limit(budget):
            mask = searched  # other heads of a group would keep a key/value head that was to go
        moved = tuple(str(head) for head in mask.heads if mask[head] != searched[head])
        return Choice(mask, model, ChoiceDetails(rearranged=moved))


CHOOSER = Fisher
