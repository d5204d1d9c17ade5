"""Tuning: how weights learn, after heads were removed and, with choosers that train, before. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headcount.options import Options, option
from headcount.registry import Registry

STEPS = 1050  # after gates: 1200 steps with theirs
tuners: Registry[Any] = Registry("tuner", "headcount.pruning.tuners", "TUNER")


@dataclass(frozen=True)
class Tuning(Options):
    """Settings of training; the defaults are those of the trade-off."""

    steps: int | None = option(
        None, f"Steps of training after removal; with gates {STEPS} if not given, otherwise none.", type=int,
        minimum=0, flag="--tune",
    )  # fmt: skip
    distill: float = option(
        0.0, "Share of the loss that asks for what MODEL predicts.", minimum=0.0, maximum=1.0,
    )  # fmt: skip
    tuner: str = option("weights", "weights: from those that are there; scratch: from random ones.", choices=tuners)
    rate: float | None = option(None, "Learning rate of the weights.", type=float, minimum=0.0, above=True)
    warmup: int | None = option(None, "Steps of warm-up.", type=int, minimum=1)
    batch: int = option(1000, "Source tokens of a step.", minimum=1)
    chunk: int = option(1000, "Source tokens run at once.", minimum=1)
    clip: float = option(1.0, "Largest norm of the gradient.", minimum=0.0)


AFTER_GATES = Tuning(steps=STEPS)
