"""A method is a whole way of pruning: from a model and a task to a smaller model. `hc.prune(name, model, task)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from headcount.errors import VerificationError
from headcount.heads import HeadGrid
from headcount.record import Record
from headcount.registry import Registry
from headcount.selection.budget import Budget
from headcount.surgery.exercise import exercise
from headcount.surgery.price import in_heads
from headcount.tasks.task import Task


@dataclass(frozen=True)
class Pruned:
    """What a method gives: the smaller model, which heads it has, and how it came about."""

    model: nn.Module
    mask: HeadGrid
    record: Record


methods: Registry[Callable[..., Pruned]] = Registry("method", "headcount.methods", "METHOD")


def prune(
    name: str,
    model: nn.Module,
    task: Task,
    *,
    budget: Budget | Mapping[str, Budget] | None = None,
    kinds: Sequence[str] | None = None,
    **options: Any,
) -> Pruned:
    """Prune a model by a method, "rank", "l0" or "subset" for example; the original stays as it is.

    budget: how many heads of these kinds may stay, or of each kind where the method can; heads of other kinds all stay.
        A budget of parameters, FLOPs or milliseconds is of the whole model.
    Raises VerificationError, with all of the result, where the pruned model does not do what the masked one does.
    """
    method = methods[name]
    known = getattr(method, "any_budget", False)  # otherwise it must know beforehand how many heads are to go
    if isinstance(budget, Budget) and not known:
        budget = in_heads(model, budget, kinds=kinds, length=options.get("length", 128))
    if options.get("verify", True):
        exercise(model, generate=False)  # a model that cannot be verified is refused before the work
    pruned = method(model, task, budget=budget, kinds=kinds, **options)
    if "fault" in pruned.record.parts:
        advice = "This error's `model` is the pruned model, its `result` has the record; verify=False does not compare."
        raise VerificationError(pruned.record.parts["fault"], advice, model=pruned.model, result=pruned)
    return pruned
