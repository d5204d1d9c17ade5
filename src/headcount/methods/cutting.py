"""Cutting: how every method ends: heads are removed, made up for where asked, and what was done is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from headcount.errors import UsageError, VerificationError
from headcount.heads import Head, HeadGrid
from headcount.sites.locate import locate
from headcount.statistics import bootstrap_interval
from headcount.surgery.compensate import compensate
from headcount.surgery.cost import cost
from headcount.surgery.remove import remove
from headcount.tasks.task import Quality, Task

Progress = Callable[[str, int, int], None]  # part, done, of


@dataclass(frozen=True)
class Cutting:
    """How heads are cut out."""

    compensate: str = "none"
    add_bias: bool = False  # of output projections that have none
    verify: bool = True
    inplace: bool = False
    length: int = 128  # tokens of the example that costs are counted on

    def fitted_on(self, task: Task) -> list[Task]:
        """What the compensation is fitted on, if there is one."""
        return [task] if self.compensate != "none" else []


def cut_out(
    model: nn.Module,
    mask: HeadGrid,
    task: Task | None,
    how: Cutting,
    *,
    measure_on: Task | None = None,
    progress: Progress = lambda *_: None,
) -> tuple[nn.Module, dict[str, Any]]:
    """The smaller model, and what its record says of how it was cut; "fault" where verification failed.

    task: the data to calibrate on. measure_on: measure the smaller model, where it is more than the masked one.
    """
    if how.compensate != "none" and task is None:
        raise UsageError(f"Compensation by {how.compensate} needs data to calibrate on: give a task.")
    before = cost(model, length=how.length)
    made_up: Any = "none"
    if how.compensate != "none" and task is not None:
        made_up = compensate(model, mask, task, how.compensate, add_bias=how.add_bias, progress=progress)
    small, fault = _removed(model, mask, how, made_up)
    parts: dict[str, Any] = {
        "removed": [str(head) for head in mask.heads if not mask[head]],
        "heads": len(mask),
        "verified": how.verify and not fault,
        "cost": {"before": asdict(before), "after": asdict(cost(small, length=how.length))},
    }
    if fault:
        parts["fault"] = fault
    if made_up != "none":
        parts["compensation"] = made_up.to_plain()
        if measure_on is not None:
            parts["compensation"]["quality"] = measured(measure_on.quality(small))
    return small, parts


def _removed(model: nn.Module, mask: HeadGrid, how: Cutting, compensation: Any) -> tuple[nn.Module, str]:
    """The smaller model, and what verification found wrong with it: whoever saves it decides what becomes of it."""
    try:
        return remove(model, mask, verify=how.verify, inplace=how.inplace, compensate=compensation), ""
    except VerificationError as error:
        return error.model, error.reason


def measured(quality: Quality) -> dict[str, Any]:
    """A quality with its interval, for a record."""
    interval = bootstrap_interval(quality.statistics, quality.metric.of_sums)
    return {"metric": quality.metric.name, **dict(zip(("value", "low", "high"), interval, strict=True))}


def counted_heads(model: nn.Module, kinds: Sequence[str] | None) -> list[Head]:
    """The heads that may go; a kind that the model does not have is an error."""
    known = locate(model).kinds
    unknown = [kind for kind in kinds or () if kind not in known]
    if unknown:
        raise UsageError(f"The model has no {', '.join(unknown)} heads; it has {', '.join(known)}.")
    return [head for head in locate(model).heads if kinds is None or head.kind in kinds]
