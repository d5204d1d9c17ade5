"""given: heads to remove or to keep, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.errors import UsageError
from headcount.pruning.pipeline import Budgets, Choice, Chooser, Data, Execution, Pipeline

if TYPE_CHECKING:
    from torch import nn

    from headcount.heads import HeadGrid
    from headcount.tasks.overlap import Identified


@dataclass(frozen=True)
class Given(Chooser):
    """Names of heads; `encoder.0.*` is a whole site."""

    needs_data: ClassVar[bool] = False

    remove: tuple[str, ...] | None = None
    keep: tuple[str, ...] | None = None  # all others go
    known: bool = False  # whether the examples that they were chosen on are stated elsewhere

    def chosen_on(self, data: Data, pipeline: Pipeline) -> list[Identified]:
        from headcount.tasks.overlap import UNKNOWN

        return [] if self.known else [UNKNOWN]

    def check_budget(self, keep: Budgets | None) -> None:
        if (self.remove is None) == (self.keep is None):
            raise UsageError("Give either the heads to remove or the heads to keep.")
        if keep is not None:
            raise UsageError("Give either named heads or a budget, not both.")

    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        return Choice(self.mask(model), model)

    def mask(self, model: nn.Module) -> HeadGrid:
        """The heads by name, in a model."""
        from headcount.sites.locate import locate

        sites = locate(model)
        return sites.mask(off=self.remove) if self.keep is None else sites.mask(keep=self.keep)

    def to_plain(self) -> dict[str, Any]:
        """`keep` is the budget of a pipeline: heads to keep have a name of their own, if there are any."""
        return {"remove": self.remove} if self.keep is None else {"remove": self.remove, "keep_heads": self.keep}

    def to_arguments(self) -> list[str]:
        return ["--remove", ",".join(self.remove)] if self.remove is not None else ["--keep", ",".join(self.keep or ())]


CHOOSER = Given
