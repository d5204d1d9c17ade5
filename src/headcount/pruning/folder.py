"""Resumable pruning in a folder, of one model or of several that differ in one option.

DIR/                 pruned model with its tokenizer
DIR/record.json      results
DIR/gates.json       values of the trained gates, if any
DIR/training/        settings and the state that each stage resumes from: gates/, greedy-COMPENSATION.json, tune/, and
                     milliseconds.json, the times of models for a budget of milliseconds

If the option has several values, each model has its own folder, such as DIR/0.01, and DIR/record.json summarizes them.
A search without training resumes from DIR.unfinished/, which is deleted after DIR is written.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import nn

from headcount import file_list, journal, locks, processes
from headcount.checkpoints.chosen_on import read_chosen_on
from headcount.checkpoints.save import refuse_training_run
from headcount.checkpoints.standalone import loading_classes
from headcount.errors import FolderError, HeadcountError, RecordError, VerificationError
from headcount.heads import Head, HeadGrid
from headcount.pruning.adaptation import full_precision_accelerator
from headcount.pruning.pipeline import Data, Execution, Pipeline
from headcount.pruning.run import run
from headcount.pruning.saving import Saving
from headcount.pruning.trail import finished, has_trail
from headcount.record import Record, Signature
from headcount.record.results.prune import Pruning
from headcount.record.results.prune_sweep import Sweep, SweepPoint
from headcount.sites.fingerprint import weight_hash
from headcount.surgery.price import TIMES
from headcount.tasks.inputs import FILES, claim_inputs
from headcount.tasks.overlap import check_apart, measured_on
from headcount.training.recipe import Recipe
from headcount.training.run import Run

_USUAL = Execution()
_SETTINGS = "settings.json"
_RECORD = "record.json"
_NO_STATES = (_SETTINGS, *FILES, TIMES)  # files in a folder of states that are found again in a moment


@dataclass(frozen=True)
class PruningSettings:
    """Settings that determine the result; a folder is resumed only with the settings it was started with.

    Attributes:
        model: Folder or hub id of the model.
        weights: Hash of the weights.
        data: Fingerprints of the tasks.
        pipeline: Settings of the pipeline.
        reading: Settings of the data.
    """

    model: str
    weights: str
    data: str
    pipeline: Mapping[str, Any]
    reading: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, pipeline: Pipeline, model: nn.Module, data: Data, source: str, reading: Mapping[str, Any] | None
    ) -> PruningSettings:
        """Collect the settings of a run; `source` is the folder or hub id of the model."""
        tasks = [data.train, data.choose, data.calibrate, data.measure]
        prints = ", ".join(task.fingerprint if task is not None else "-" for task in tasks)
        decisive = {**pipeline.to_plain(), "seed": pipeline.seed, "length": pipeline.length}
        return cls(source, weight_hash(model), prints, decisive, reading or {})


def prune_in_folder(
    pipeline: Pipeline,
    model: nn.Module,
    data: Data,
    out: Path,
    saving: Saving,
    execution: Execution = _USUAL,
    *,
    reading: Mapping[str, Any] | None = None,
) -> Record[Pruning]:
    """Run a pipeline, save the pruned model and return its record.

    A run with training resumes from the state in the folder. If the folder is finished, its record is returned.

    Args:
        pipeline: How heads are chosen and removed.
        model: The model to prune.
        data: Tasks for training, selection, calibration and measurement.
        out: Folder for the pruned model.
        saving: How the model is saved.
        execution: Settings that do not change the result.
        reading: Further settings that determine the result, such as those of the data, as JSON values.
    """
    if saving.standalone:
        loading_classes(model)  # fails before the work
    settings = PruningSettings.of(pipeline, model, data, saving.source, reading)
    execution = replace(execution, chosen_before=read_chosen_on(saving.source, saving.revision))
    if not pipeline.trains:
        refuse_training_run(out)
        with _unfinished(out, settings, model, data) if pipeline.chooser.resumes else nullcontext() as search_folder:
            pruned = run(pipeline, model, data, replace(execution, folder=search_folder))
            record = saving.completed(pruned.model, pruned.record)
            if search_folder and processes.is_main():
                journal.write_json(search_folder / _RECORD, record.to_plain())
            saving.save(pruned.model, out, record, pruned.chosen_on)
        return record
    check_apart(data.train, data.measure)
    folder = Run(out, settings, Recipe(steps=1), full_precision_accelerator())
    with folder.claimed():
        _claim_inputs(folder.work, model, data)
        folder.accelerator.wait_for_everyone()
        if (out / "config.json").is_file():
            return _finished(out, saving)
        return _prune(folder, saving, pipeline, model, data, replace(execution, folder=folder.work))


def _finished(out: Path, saving: Saving) -> Record[Pruning]:
    """The record of a finished run. Raises if its model lacks code that is asked for now."""
    record = Record.load(out / _RECORD)
    if saving.standalone and record.parts.loaded_by == "headcount":
        raise FolderError(
            f"{out} is finished, without code that loads it (--standalone). Add the code in another folder: "
            f"hc.save(hc.load({str(out)!r}), NEW, tokenizer=..., standalone=True)."
        )
    return record


@contextmanager
def _unfinished(out: Path, settings: PruningSettings, model: nn.Module, data: Data) -> Iterator[Path]:
    """Provide OUT.unfinished for the steps of a search without training, and finish it if the block succeeds.

    The budget may change when the command is repeated: a longer search continues a shorter one. If it is refused before
    its first step, no folder stays, unless it was begun with other settings.
    """
    folder = _search_folder(out)
    if processes.is_main() and journal.contents(folder) and not (folder / _SETTINGS).is_file():
        raise FolderError(
            f"{folder} has files that headcount did not write, in the place of unfinished work; move them, or give "
            "another folder."
        )
    removable = not (folder / _SETTINGS).is_file()
    try:
        with file_list.listing(folder) if processes.is_main() else nullcontext():
            _claim_states(folder, settings, model, data, any_budget=True)
            removable = True
            yield folder
    except HeadcountError:
        if processes.is_main() and removable and not has_trail(folder) and not (folder / _RECORD).is_file():
            journal.remove_listed(folder)
        raise
    if processes.is_main():
        _finish_search(folder)


@contextmanager
def claimed_states(folder: str | Path, pipeline: Pipeline, model: nn.Module, data: Data) -> Iterator[None]:
    """Start a folder of states to resume from, or raise if it was begun with other settings, another model or data.

    If the block fails before there is a state, the folder can be begun with other settings.
    """
    folder = Path(folder)
    settings = PruningSettings.of(pipeline, model, data, "", None)
    _claim_states(folder, settings, model, data, any_budget=not pipeline.trains)
    try:
        yield
    except HeadcountError:
        if processes.is_main() and {path.name for path in journal.contents(folder)} <= {*_NO_STATES}:
            for name in _NO_STATES:
                (folder / name).unlink(missing_ok=True)
        raise


def _claim_states(folder: Path, settings: PruningSettings, model: nn.Module, data: Data, *, any_budget: bool) -> None:
    if any_budget:
        decisive = {name: value for name, value in settings.pipeline.items() if name != "keep"}
        settings = replace(settings, pipeline=decisive)
    if processes.is_main():
        journal.claim(folder, _SETTINGS, asdict(settings))
        _claim_inputs(folder, model, data)


def _claim_inputs(folder: Path, model: nn.Module, data: Data) -> None:
    if processes.is_main():
        claim_inputs(folder, model, data.train or data.choose or data.measure)


def clear_finished(out: Path) -> None:
    """Remove OUT.unfinished if its result is already saved in OUT; a process may be killed between the two steps."""
    folder = _search_folder(out)
    journal.recover(folder.resolve())
    records = [path / _RECORD for path in (folder, out)]
    if all(path.is_file() for path in records) and len({path.read_bytes() for path in records}) == 1:
        _finish_search(folder)


def _finish_search(folder: Path) -> None:
    """Remove a search whose result is saved, unless it has further steps: of another one, which can resume."""
    for file in finished(folder, Record.load(folder / _RECORD).parts.choice_details.search or ()):
        file.unlink()
    if not has_trail(folder):
        journal.remove_listed(folder)
        return
    (folder / _RECORD).unlink()
    warnings.warn(
        f"{folder} has the steps of a longer search, or of one that was interrupted, from which the same command with "
        "its --keep resumes. Delete it if you do not need them.",
        stacklevel=2,
    )


def _search_folder(out: Path) -> Path:
    return out.with_name(f"{out.name}.unfinished")


def _prune(
    folder: Run, saving: Saving, pipeline: Pipeline, model: nn.Module, data: Data, execution: Execution
) -> Record[Pruning]:
    try:
        pruned = run(pipeline, model, data, execution)
    except HeadcountError:
        if folder.accelerator.is_main_process and not has_trail(folder.work):
            folder.abandon()
        raise
    if pruned.record.parts.fault:
        advice = f"The trained model is kept in {folder.out}: run the same command with --no-verify to save it."
        raise VerificationError(pruned.record.parts.fault, advice, model=pruned.model, result=pruned)
    record = saving.completed(pruned.model, pruned.record)
    if folder.accelerator.is_main_process:
        with folder.new_checkpoint() as path:
            saving.save(pruned.model, path, record, pruned.chosen_on)
            if record.parts.gates is not None:
                values = HeadGrid([(Head.parse(name), value) for name, value in record.parts.gates.values.items()])
                journal.write_text(path / "gates.json", values.to_json() + "\n")
    folder.accelerator.wait_for_everyone()
    return record


def sweep(
    pipelines: Mapping[str, Pipeline],
    model: nn.Module,
    data: Data,
    out: Path,
    saving: Saving,
    execution: Execution = _USUAL,
    *,
    reading: Mapping[str, Any] | None = None,
) -> Record[Sweep]:
    """Run each pipeline in its own folder. Several processes that run the same command share the work.

    The record also has the models that earlier commands made in this folder, as long as their folders are there.
    """
    every_settings = [
        PruningSettings.of(pipeline, model, data, saving.source, reading) for pipeline in pipelines.values()
    ]
    _swept_earlier(out, pipelines, every_settings)  # raises before any work
    records: dict[str, Record[Pruning]] = {}
    execution = replace(execution, inplace=False)
    for _ in range(2):  # the second pass collects results that other processes have finished
        for name in [name for name in pipelines if name not in records]:
            with nullcontext(True) if processes.count() > 1 else locks.alone(out / f".{name}.claim") as claimed:
                if claimed:
                    records[name] = prune_in_folder(
                        pipelines[name], model, data, out / name, saving, execution, reading=reading
                    )
    elsewhere = tuple(name for name in pipelines if name not in records)
    measured = data.measure is not None and data.train is not None
    chosen_before = read_chosen_on(saving.source, saving.revision)
    points = {name: SweepPoint.of(records[name].parts) for name in pipelines if name in records}
    parts = Sweep(
        {**_swept_earlier(out, pipelines, every_settings), **points},
        next(iter(pipelines.values())).chooser.name,
        elsewhere,
        measured_on([*chosen_before, data.training], data.measuring) if measured else None,
    )
    fingerprint = data.train.fingerprint if data.train is not None else ""
    arguments = {"measured_on": data.measuring.fingerprint} if measured else {}
    signature = Signature(saving.source, weight_hash(model), fingerprint, arguments=arguments)
    record = Record("prune-sweep", signature, parts).on_data(saving.data)
    if not elsewhere and processes.is_main():
        record.save(out / _RECORD)
    return record


def _swept_earlier(out: Path, now: Collection[str], settings: Sequence[PruningSettings]) -> dict[str, SweepPoint]:
    """Models of an earlier sweep in this folder besides those of now. Raises if they differ in more than its option.

    settings: of the models of now.
    """
    try:
        earlier = Record.load(out / _RECORD).parts
    except RecordError:  # there is none, or it is damaged
        return {}
    plain = [json.loads(json.dumps(asdict(of_model))) for of_model in settings]
    swept = {key for row in plain for key in row["pipeline"] if row["pipeline"][key] != plain[0]["pipeline"][key]}

    def fixed(row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "pipeline": {key: value for key, value in row["pipeline"].items() if key not in swept}}

    points = {}
    for name, point in earlier.sweep.items() if isinstance(earlier, Sweep) else ():
        file = out / name / "training" / _SETTINGS
        if name in now or not file.is_file() or not (out / name / _RECORD).is_file():
            continue
        if fixed(journal.read_json(file)) != fixed(plain[0]):
            raise FolderError(
                f"{out / name} was made with other settings than those of now, and the summary of {out} would lose it. "
                "Use the same settings, or another folder."
            )
        points[name] = point
    return points
