"""Learned pruning into a folder: begun once and gone on with, one model or one for each factor of the penalty.

DIR/                 the smaller model with its tokenizer
DIR/record.json      what was measured
DIR/gates.json       what the gates learned
DIR/training/        settings, states to go on from, and the log of both parts: gates/ and tune/

With several factors each has a folder of its own, DIR/0.01 and so on, and DIR/record.json sums them up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import nn

from headcount import journal, locks, processes
from headcount.errors import HeadcountError, UsageError, VerificationError
from headcount.heads import HeadGrid
from headcount.methods.given import save_pruned
from headcount.methods.method import prune
from headcount.record import Record, Signature
from headcount.sites.fingerprint import weight_hash
from headcount.studies.held_out import check_apart
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Task
from headcount.training.recipe import Recipe
from headcount.training.run import Run

_NOT_DECISIVE = ("progress", "save_seconds", "verify")  # options that change nothing of the result


@dataclass(frozen=True)
class Settings:
    """All that decides what comes out; a folder goes on only with the settings it was begun with."""

    method: str
    model: str
    weights: str
    data: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Saving:
    """How the smaller model is written."""

    source: str
    revision: str | None = None
    standalone: bool = False


def prune_in_folder(
    method: str,
    model: nn.Module,
    task: Task,
    out: Path,
    saving: Saving,
    *,
    measure_on: Task | None = None,
    plain: Mapping[str, Any] | None = None,
    **options: Any,
) -> Record:
    """Prune by a method that trains, from wherever the folder stands; a finished folder gives its record.

    plain: what decides the result besides `options`, such as how data were asked for, as JSON.
    """
    check_apart(task, measure_on)
    data = task.fingerprint if measure_on is None else f"{task.fingerprint}, {measure_on.fingerprint}"
    decisive = {name: _plain(value) for name, value in options.items() if name not in _NOT_DECISIVE}
    settings = Settings(method, saving.source, weight_hash(model), data, {**decisive, **(plain or {})})
    run = Run(out, settings, Recipe(steps=1), Accelerator(mixed_precision="no"))
    with run.claimed():
        run.accelerator.wait_for_everyone()
        if (out / "config.json").is_file():
            return Record.load(out / "record.json")
        return _prune(run, saving, method, model, task, measure_on=measure_on, **options)


def _prune(
    run: Run, saving: Saving, method: str, model: nn.Module, task: Task, *, measure_on: Task | None, **options: Any
) -> Record:
    try:
        result = prune(method, model, task, measure_on=measure_on, folder=run.work, **options)
    except VerificationError as error:
        advice = f"What was learned is kept in {run.out}: the same command with --no-verify goes on from it."
        raise VerificationError(error.reason, advice, model=error.model) from error
    except HeadcountError:
        if run.accelerator.is_main_process:
            run.abandon()
        raise
    record = result.record
    record.signature = replace(record.signature, model=saving.source)
    if run.accelerator.is_main_process:
        values = HeadGrid(list(record.parts["gates"]["values"].items()))
        journal.write_text(run.out / "gates.json", values.to_json() + "\n")
        run.put(lambda folder: save_pruned(result.model, folder, record, **asdict(saving)))
    run.accelerator.wait_for_everyone()
    return record


def sweep(
    method: str,
    model: nn.Module,
    task: Task,
    out: Path,
    saving: Saving,
    *,
    penalties: Sequence[float],
    **options: Any,
) -> Record:
    """A model for each factor of the penalty, in a folder of its own. Processes begun alike share the factors."""
    if len(set(penalties)) < len(penalties):
        raise UsageError(f"Every factor of the penalty once; got {', '.join(f'{value:g}' for value in penalties)}.")
    found: dict[float, Record] = {}
    options["inplace"] = False
    for _ in range(2):  # whoever is done last finds what others were at
        for penalty in [penalty for penalty in penalties if penalty not in found]:
            folder = out / f"{penalty:g}"
            with nullcontext(True) if processes.count() > 1 else locks.alone(out / f".{penalty:g}.claim") as mine:
                if mine:
                    found[penalty] = prune_in_folder(method, model, task, folder, saving, penalty=penalty, **options)
    found = {penalty: found[penalty] for penalty in penalties if penalty in found}
    points = {
        f"{penalty:g}": {"kept": record.parts["kept"], "heads": record.parts["kept_heads"], **_qualities(record)}
        for penalty, record in found.items()
    }
    elsewhere = [penalty for penalty in penalties if penalty not in found]
    record: Record = Record(
        "prune sweep", Signature(saving.source, weight_hash(model), task.fingerprint), {"sweep": points}
    )
    record.parts |= {"method": method, "elsewhere": elsewhere}
    if options.get("measure_on") is not None:
        record.parts["measured_on"] = measured_on([task], options["measure_on"])
    if not elsewhere and processes.is_main():
        record.save(out / "record.json")
    return record


def _qualities(record: Record) -> dict[str, Any]:
    names = ("value", "low", "high")
    found = {
        name: quality and {key: quality[key] for key in names} for name, quality in record.parts["quality"].items()
    }
    return {"quality": found, "settled": record.parts["gates"]["settled"]}


def _plain(value: Any) -> Any:
    """Budgets as text, the rest as it is."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value if isinstance(value, int | float | str | bool | list | None) else str(value)
