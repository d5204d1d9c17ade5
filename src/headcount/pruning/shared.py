"""Options shared by several choosers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headcount.options import option
from headcount.pruning.pipeline import Chooser


@dataclass(frozen=True)
class Gated(Chooser):
    """Options of choosers with gates."""

    trains: ClassVar[bool] = True
    usually_tuned: ClassVar[bool] = True

    steps: int | None = option(
        None, "Training steps with gates. Default: 150; 2200 from random weights.", type=int, minimum=0
    )
    gate_rate: float | None = option(
        None, "Learning rate of the gates. Default: 0.1 (l0), 0.2 or 0.5 (subset).", type=float, minimum=0.0,
        above=True,
    )  # fmt: skip
