"""Options that several choosers share, each written once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from headcount.pruning.options import option
from headcount.pruning.pipeline import Chooser


@dataclass(frozen=True)
class ByLayer(Chooser):
    """Of choosers that can spare every layer some heads."""

    at_least: int = option(0, "Heads that every layer keeps.", minimum=0)


@dataclass(frozen=True)
class ByNumbers(ByLayer):
    """Of choosers that select heads by one number for each."""

    rule: Literal["top", "uniform"] = option(
        "top", "top: the best heads stay; uniform: as many in every layer.", choices=("top", "uniform")
    )


@dataclass(frozen=True)
class Gated(Chooser):
    """Of choosers that learn with gates."""

    trains: ClassVar[bool] = True
    usually_tuned: ClassVar[bool] = True

    steps: int | None = option(
        None, "Steps with gates; 150 if not given, 2200 from random weights.", type=int, minimum=0
    )
    gate_rate: float | None = option(
        None, "Learning rate of the gates; l0: 0.1, subset: 0.2 (translation) or 0.5.", type=float, minimum=0.0,
        above=True,
    )  # fmt: skip
