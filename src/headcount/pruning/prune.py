"""hc.prune: a pipeline by keywords."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from headcount.errors import UsageError, VerificationError, check_type
from headcount.heads import HeadGrid
from headcount.probes.masks import align
from headcount.pruning.choosers.given import Given
from headcount.pruning.folder import claimed_states
from headcount.pruning.pipeline import Budgets, Chooser, Data, Execution, Pipeline, chooser_of
from headcount.pruning.run import Pruned, run
from headcount.pruning.tuning import Tuning
from headcount.selection.budget import Budget, parse_budgets
from headcount.selection.shape import FREE, Shape
from headcount.sites.locate import locate
from headcount.tasks.overlap import UNKNOWN
from headcount.tasks.task import Task

_ADVICE = "This error's `model` is the pruned model, its `result` has the record; verify=False does not compare."
_EXECUTION = tuple(each.name for each in fields(Execution))
_PIPELINE = ("add_bias", "length")
_SHAPE = tuple(Shape.limits())


def prune(
    model: nn.Module,
    task: Task | None = None,
    *,
    keep: Budgets | str | None = None,
    kinds: Sequence[str] | None = None,
    choose: str | HeadGrid | Chooser = "gradient",
    compensate: str | None = None,
    tune: Tuning | int | None = None,
    choose_on: Task | None = None,
    calibrate_on: Task | None = None,
    measure_on: Task | None = None,
    shape: Shape | None = None,
    seed: int = 0,
    **options: Any,
) -> Pruned:
    """Prune a model: choose heads, compensate for them, remove them, and fine-tune the rest.

    Every stage except removal is optional. The original model is not changed.

    Args:
        model: The model.
        task: Data to choose heads on and to train on.
        keep: How much to keep: a `Budget`, a string such as "50%" or "encoder=8,cross=50%", or a `Budget` for each
            kind. Budgets of parameters, FLOPs or milliseconds count the whole model.
        kinds: Kinds of attention whose heads may be removed. By default all.
        choose: A score, of which the lowest heads are removed; "fisher", "greedy", "l0" or "subset"; or a mask with 0
            for the heads to remove.
        compensate: "none", "bias", "scale" or "lstsq". By default "lstsq" with "greedy", otherwise "none".
        tune: Fine-tuning after removal: a number of steps or a `Tuning`. "l0" and "subset" train by default.
        choose_on: Other data to choose heads on.
        calibrate_on: Other data to fit the compensation on.
        measure_on: Data to measure quality on. It should be held out.
        shape: Constraints on the remaining heads, such as `Shape(groups="even")` or `hc.shape_for(model, "gguf")`. Its
            fields can also be given as keywords, such as at_least=1 or rule="uniform".
        seed: Random seed of "random", "l0", "subset" and fine-tuning.
        options: Options of the chooser or score (such as `recompute`, `candidates`, `gate_rate`), of the execution
            (`verify`, `inplace`, `folder` for states to resume from, `progress`), or `add_bias` and `length`.

    Returns:
        The pruned model with its mask and record.

    Raises:
        UsageError: If arguments do not fit together, or the budget cannot be met.
        VerificationError: If the pruned model differs from the masked one. The error has the pruned model and result.
    """
    execution = _execution({name: options.pop(name) for name in _EXECUTION if name in options})
    settings = {name: options.pop(name) for name in _PIPELINE if name in options}
    constraints = Shape.of({name: options.pop(name) for name in _SHAPE if name in options})
    if kinds is not None and not kinds:
        raise UsageError(
            f"kinds={kinds!r} names no kind of attention, so that no head may be removed. Leave it out for all kinds, "
            f"or name some of {', '.join(locate(model).kinds)}."
        )
    if isinstance(keep, str):
        keep, kind = parse_budgets(keep)
        if kind and kinds and tuple(kinds) != (kind,):
            raise UsageError(f"keep names the kind {kind}, kinds= names {', '.join(kinds)}: give only one of the two.")
        kinds = kinds or ((kind,) if kind else None)
    if not isinstance(keep, Budget | Mapping | None):
        raise UsageError(f"keep must be a text such as '10' or '50%', or a Budget; got {keep!r}.")
    if isinstance(kinds, str):
        raise UsageError(f"kinds must be a list of attention kinds, such as ({kinds!r},); got the string {kinds!r}.")
    pipeline = Pipeline(
        _chooser(choose, options, model), keep, None if kinds is None else tuple(kinds), compensate or "",
        Tuning(steps=tune) if isinstance(tune, int) else tune, seed=seed,
        shape=(shape or FREE).and_also(constraints), **settings,
    )  # fmt: skip
    if calibrate_on is not None and pipeline.compensate == "none":
        raise UsageError(
            "calibrate_on is for a compensation: give compensate, or leave it out; heads are chosen on choose_on."
        )
    data = Data(task, choose_on, measure_on, calibrate_on)
    if not execution.chosen_before and any(len(site.heads) < site.total for site in locate(model)):
        execution = replace(execution, chosen_before=(UNKNOWN,))  # on which earlier heads were chosen
    with nullcontext() if execution.folder is None else claimed_states(execution.folder, pipeline, model, data):
        pruned = run(pipeline, model, data, execution)
    if pruned.record.parts.fault:
        raise VerificationError(pruned.record.parts.fault, _ADVICE, model=pruned.model, result=pruned)
    return pruned


def _execution(options: Mapping[str, Any]) -> Execution:
    """The settings of the execution; the path of a folder may be a text."""
    folder = options.get("folder")
    if folder is None:
        return Execution(**options)
    check_type("folder", folder, (str, os.PathLike), "the path of a folder")
    return Execution(**{**options, "folder": Path(folder)})


def _chooser(choose: str | HeadGrid | Chooser, options: Mapping[str, object], model: nn.Module) -> Chooser:
    if isinstance(choose, str):
        return chooser_of(choose, options)
    if options:
        raise UsageError(
            f"{next(iter(options))} is an option of a chooser; it has no effect on named heads. Leave it out."
        )
    if isinstance(choose, Chooser):
        return choose
    if not isinstance(choose, HeadGrid):
        raise UsageError(
            f"choose must be a name such as 'gradient', or a mask such as sites.mask(off=[...]); got {choose!r}."
        )
    for head in choose.heads:
        if choose[head] not in (0, 1):
            raise UsageError(
                f"choose is a mask of 0 and 1; {head} has {choose[head]!r}. "
                "Turn scores into a mask with hc.select(scores, hc.Budget(...)), or give the name of the score."
            )
    sites = locate(model)
    align(sites, choose)  # raises if the mask is of another model
    return Given(remove=tuple(str(head) for head in sites.heads if not choose[head]))
