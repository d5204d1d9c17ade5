"""Tuning: settings of training after heads were removed and, with choosers that train, before. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headcount.options import Options, option
from headcount.registry import Registry

STEPS = 1050  # after gates; 1200 steps with those of the gates
tuners: Registry[Any] = Registry("tuner", "headcount.pruning.tuners", "TUNER")


@dataclass(frozen=True)
class Tuning(Options):
    """Settings of fine-tuning after heads were removed.

    Attributes:
        steps: Number of steps. By default 1050 with gates, otherwise none.
        distill: Weight of the distillation loss (KL divergence from the predictions of the whole model), 0 to 1.
        tuner: "weights" fine-tunes the remaining weights; "scratch" trains from random ones.
        rate: Learning rate of the weights. By default chosen by model and task.
        warmup: Number of warm-up steps.
        batch: Source tokens per step.
        chunk: Most source tokens in one forward pass.
        clip: Largest norm of the gradient; larger ones are scaled down.
    """

    steps: int | None = option(
        None, f"Fine-tuning steps after removal. Default: {STEPS} with gates, else none.", type=int,
        minimum=0, flag="--tune",
    )  # fmt: skip
    distill: float = option(
        0.0, "Weight of the distillation loss (KL divergence from MODEL), 0 to 1.", minimum=0.0, maximum=1.0,
    )  # fmt: skip
    tuner: str = option(
        "weights", "Fine-tune the remaining weights (weights) or train from random ones (scratch).", choices=tuners
    )
    rate: float | None = option(
        None,
        "Learning rate of the weights. Default: 5e-5; for translation 3e-3 at width 96, less for wider models.",
        type=float,
        minimum=0.0,
        above=True,
    )
    warmup: int | None = option(None, "Warm-up steps. Default: a share of the steps.", type=int, minimum=1)
    batch: int = option(1000, "Source tokens per step.", minimum=1)
    chunk: int = option(1000, "Most source tokens in one forward pass.", minimum=1)
    clip: float = option(1.0, "Clip the gradient to this norm.", minimum=0.0)


AFTER_GATES = Tuning(steps=STEPS)
