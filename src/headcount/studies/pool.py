"""A pool: the same whole study of several models, one folder each, and one record of all of them.

DIR/NAME/        the study of the model NAME
DIR/record.json  all of them, with the papers' claims decided on all models
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from headcount import journal
from headcount.checkpoints.loading import Loading
from headcount.claims.pool import LEDGER, pool
from headcount.errors import FolderInUse, RecordError, UsageError
from headcount.progress import Progress, silent
from headcount.record import Record
from headcount.record.results.combined import Combined
from headcount.record.results.pool import Pool
from headcount.studies.study_settings import StudySettings
from headcount.studies.whole import whole_study

_RECORD, _SETTINGS = "record.json", "settings.json"


def study_pool(
    name: str,
    settings: Sequence[StudySettings],
    out: Path,
    *,
    loading: Loading | None = None,
    parts: Sequence[str] | None = None,
    progress: Progress = silent,
) -> Record[Pool]:
    """Study the model of each of the settings. Models that other processes work on are pooled if finished.

    The record also has the models that an earlier run pooled in this folder, as long as their folders are there.
    """
    models = [of_model.model for of_model in settings]
    if len({_resolved(model) for model in models}) < len(models):
        raise UsageError(f"A model is listed twice: {', '.join(models)}. Give each model once.")
    if (out / _SETTINGS).is_file():
        raise UsageError(f"{out} already contains the study of a single model; give a new folder.")
    folders = _folders(models, out)
    earlier_records = _pooled_earlier(out, folders)
    for folder in earlier_records:
        _check_same_study(name, settings[0], Record.load(folder / _RECORD), out)
    with journal.reserved(out, shared=True):
        for of_model, folder in zip(settings, folders, strict=True):
            try:
                with journal.reserved(folder):
                    whole_study(
                        name, of_model, folder, loading=loading, parts=parts, progress=_named(folder.name, progress)
                    )  # fmt: skip
            except FolderInUse:
                continue
        return _save_pool([*folders, *earlier_records], out)


def _resolved(model: str) -> str:
    """The same for all spellings of a folder, such as `model`, `model/` and `./model`; a hub id as it is."""
    return str(Path(model).resolve()) if Path(model).exists() else model


def _folders(models: Sequence[str], out: Path) -> list[Path]:
    """The folder of each model: where its study was begun, whatever it would be named beside these models; else new."""
    begun = _begun(out)
    folders, used_folders = [], set(begun.values())
    for number, (model, name) in enumerate(zip(models, folder_names(models), strict=True), start=1):
        folder = begun.get(_resolved(model), out / name)
        while _resolved(model) not in begun and folder in used_folders:
            folder = folder.with_name(f"{folder.name}-{number}")
        used_folders.add(folder)
        folders.append(folder)
    return folders


def _begun(out: Path) -> dict[str, Path]:
    """The models with a study in this folder; of two studies of a model, the finished one."""
    files = sorted(out.glob(f"*/{_SETTINGS}"), key=lambda file: ((file.parent / _RECORD).is_file(), file))
    return {_resolved(model): file.parent for file in files if (model := _model_of(file))}


def _model_of(settings: Path) -> str:
    """The model that the settings of a study name; empty if they cannot be read."""
    try:
        content = journal.read_json(settings)
    except RecordError:
        return ""
    return str(content.get("model", "")) if isinstance(content, dict) else ""


def _pooled_earlier(out: Path, folders: Sequence[Path]) -> list[Path]:
    """Folders of further models that the record of an earlier run has."""
    try:
        pooled = Record.load(out / _RECORD).parts
    except RecordError:  # there is none, or it is damaged
        return []
    files = sorted(out.glob(f"*/{_RECORD}")) if isinstance(pooled, Pool) else []
    other_records = {file.parent: Record.load(file) for file in files if file.parent not in folders}
    return [
        folder
        for folder, record in other_records.items()
        if isinstance(record.parts, Combined) and record.signature.model in pooled.studies
    ]


def _check_same_study(name: str, settings: StudySettings, study: Record[Combined], out: Path) -> None:
    """Raise if a study cannot be pooled with those of a name and settings; each has its own model and data."""
    ours, theirs = json.loads(json.dumps(asdict(settings))), dict(study.parts.settings)
    for values in (ours, theirs):
        values |= {"model": "", "source": {**values.get("source", {}), "data": ""}, "study": name}
    theirs["study"] = study.parts.name
    differ = [key for key in ours if ours[key] != theirs.get(key)]
    if differ:
        differences = "; ".join(f"{key}: {theirs.get(key)} there, {ours[key]} now" for key in differ)
        raise UsageError(
            f"{out} already has the study of {study.signature.model} with other settings ({differences}). Use the "
            "same, or another folder."
        )


def _save_pool(folders: Sequence[Path], out: Path) -> Record[Pool]:
    """Save the record of all finished studies; again if another process has finished one meanwhile."""
    while True:
        studies = _finished(folders)
        record = pool(studies)
        journal.write_json(out / _RECORD, record.to_plain(), replaces=_is_made_of_folders)
        if len(_finished(folders)) == len(studies):
            return record


def _is_made_of_folders(file: Path) -> bool:
    """Whether a record is of studies that are all still in folders beside it: nothing is lost with it."""
    try:
        pooled = Record.load(file).parts
    except RecordError:
        return False
    return isinstance(pooled, Pool) and {_resolved(model) for model in pooled.studies} <= set(_begun(file.parent))


def folder_names(models: Sequence[str]) -> list[str]:
    """The last part of each model's path or hub id, with its number if two are the same; twice if that is taken."""
    names = [model.rstrip("/").rpartition("/")[2] for model in models]
    used_names, folders = {name for name in names if names.count(name) == 1}, []
    for number, name in enumerate(names, start=1):
        folder = name if name in used_names else f"{name}-{number}"
        while name not in used_names and folder in used_names:
            folder += f"-{number}"
        folders.append(folder)
    return folders


def _named(model: str, progress: Progress) -> Progress:
    return lambda what, step, of: progress(f"{model}: {what}", step, of)


def _finished(folders: Sequence[Path]) -> list[Record[Combined]]:
    """Studies that are complete; other processes may work on the rest."""
    records = [Record.load(file) for folder in folders if (file := folder / _RECORD).is_file()]
    studies = [record for record in records if LEDGER in record.parts.records]
    if not studies:
        raise FolderInUse(
            f"Other processes are working on every model of {folders[0].parent}. Wait until one of them is done."
        )
    return studies
