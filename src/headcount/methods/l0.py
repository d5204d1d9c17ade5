"""l0: Hard Concrete gates learn which heads to keep while the model adapts (Voita et al. 2019, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from headcount.methods.course import Course, Progress
from headcount.methods.learned import Budgets, Work, counts, kinds_of, prune_learned
from headcount.methods.method import Pruned
from headcount.probes.gated import VARIANTS, HardConcreteGates
from headcount.tasks.task import Task
from headcount.training.penalty import Penalty


def prune_l0(
    model: nn.Module,
    task: Task,
    *,
    budget: Budgets | None = None,
    kinds: Sequence[str] | None = None,
    penalty: float | None = None,
    variant: str = "default",
    gate_rate: float = 0.1,
    fresh: bool = False,
    distill: float = 0.0,
    steps: int | None = None,
    tune: int | None = None,
    rate: float | None = None,
    warmup: int | None = None,
    batch: int = 1000,
    chunk: int = 1000,
    clip: float = 1.0,
    seed: int = 0,
    measure_on: Task | None = None,
    folder: Path | None = None,
    verify: bool = True,
    inplace: bool = False,
    length: int = 128,
    save_seconds: float = 60.0,
    progress: Progress = lambda *_: None,
) -> Pruned:
    """Train a model on a task with gates on its heads, remove those whose gates close, fine-tune what is left.

    budget: heads that are left, of all or of each kind, met exactly by adapting lambda; or
    penalty: lambda itself, which leaves as many as it leaves.
    kinds: with encoder alone, nothing of a decoder is changed. fresh: begin from random weights (footnote 8).
    steps, tune: steps with gates, 150, and of fine-tuning afterwards, 1050; 1600 and 800 from random weights.
    distill: share of the loss, gates and fine-tuning alike, that asks for what the model predicted before.
    rate, gate_rate: learning rates. warmup: steps of it, 20, or 300 from random weights.
    measure_on: data to measure on before and after; the task itself is trained on.
    folder: for the state, to go on from after an interruption.
    """
    kinds = kinds_of(model, budget, kinds)
    keep = counts(model, budget, kinds)
    course = Course.of(
        fresh=fresh, steps=steps, tune=tune, rate=rate, warmup=warmup, batch=batch, chunk=chunk, clip=clip, seed=seed,
        distill=distill,
    )  # fmt: skip

    def begin(live: nn.Module) -> tuple[HardConcreteGates, Any]:
        gates = HardConcreteGates(live, kinds=kinds, variant=variant, seed=seed)
        return gates, Penalty(gates, steps=course.steps, keep=keep, factor=penalty, rate=gate_rate, seed=seed)

    told = {"budget": keep, "penalty": penalty, "variant": variant, "gate_rate": gate_rate}
    work = Work(
        course, kinds, told, measure_on=measure_on, folder=folder, verify=verify, inplace=inplace, length=length,
        save_seconds=save_seconds, progress=progress,
    )  # fmt: skip
    result = prune_learned(model, task, "l0", begin, work)
    shape = VARIANTS[variant].shape
    distributions = [shape.described(log_a) for log_a in (0.0, 2.0, -3.0)]  # those of the paper's Figure 6
    result.record.parts["hard_concrete"] = distributions
    return result


METHOD = prune_l0
