"""subset: gates that are open for exactly so many heads learn which ones (Li, Cotterell, Sachan 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from headcount.errors import UsageError
from headcount.methods.course import Course, Progress
from headcount.methods.learned import Budgets, Work, counts, kinds_of, prune_learned
from headcount.methods.method import Pruned
from headcount.probes.subset import SubsetGates
from headcount.tasks.task import Task
from headcount.training.annealing import Annealing


def prune_subset(
    model: nn.Module,
    task: Task,
    *,
    budget: Budgets | None = None,
    kinds: Sequence[str] | None = None,
    pipelined: bool = False,
    straight_through: bool = False,
    hot: float | None = None,
    cold: float = 1e-8,
    annealed: float = 0.5,
    gate_rate: float | None = None,
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
    """Train a model on a task with a relaxed choice of its heads, remove those not chosen, fine-tune what is left.

    pipelined: the weights stay as they are while the choice is learned; otherwise both learn together.
    straight_through: gates are 0 or 1 from the beginning, only gradients are relaxed; a control.
    hot, cold, annealed: temperatures, and the share of the steps over which they fall; .1 for translation and 1000
    for other tasks as in the paper, as is gate_rate, .2 and .5. The rest as in `l0`.
    """
    if budget is None:
        raise UsageError("The method subset needs a budget: how many heads are to stay.")
    kinds = kinds_of(model, budget, kinds)
    keep = counts(model, budget, kinds)
    translates = task.name == "translation"
    hot = hot if hot is not None else 0.1 if translates else 1000.0
    gate_rate = gate_rate if gate_rate is not None else 0.2 if translates else 0.5
    course = Course.of(
        fresh=fresh, steps=steps, tune=tune, rate=rate, warmup=warmup, batch=batch, chunk=chunk, clip=clip, seed=seed,
        distill=distill,
    )  # fmt: skip

    def begin(live: nn.Module) -> tuple[SubsetGates, Any]:
        gates = SubsetGates(live, keep=keep if keep is not None else 0, kinds=kinds, straight_through=straight_through)
        how = {"hot": hot, "cold": cold, "share": annealed, "rate": gate_rate}
        return gates, Annealing(gates, steps=course.steps, seed=seed, **how)

    temperatures = {"hot": hot, "cold": cold, "annealed": annealed, "gate_rate": gate_rate}
    told = {"budget": keep, "straight_through": straight_through, "temperatures": temperatures}
    work = Work(
        course, kinds, told, weights=not pipelined, measure_on=measure_on, folder=folder, verify=verify,
        inplace=inplace, length=length, save_seconds=save_seconds, progress=progress,
    )  # fmt: skip
    return prune_learned(model, task, "subset", begin, work)


METHOD = prune_subset
