"""headcount-export.json of an exported folder: names of the files that the export wrote. Others are the user's."""

from __future__ import annotations

from pathlib import Path

from headcount import journal
from headcount.checkpoints.companions import is_companion
from headcount.checkpoints.folder import CONFIG, GENERATION, is_weight_file, weight_files
from headcount.errors import RecordError

FILE = "headcount-export.json"
_VERSION = 1
_WITH_WEIGHTS = "modeling_pruned.py"  # of the only runtime that reads safetensors
# Exports of earlier versions have no list. Each is known by one file, which has these beside it.
_UNLISTED: dict[str, tuple[str, ...]] = {
    _WITH_WEIGHTS: (),
    "encoder_model.onnx": ("decoder_model.onnx",),
    "openvino_model.xml": ("openvino_model.bin",),
    "openvino_encoder_model.xml": ("openvino_encoder_model.bin",),
    "openvino_decoder_model.xml": ("openvino_decoder_model.bin",),
    "shared_vocabulary.json": ("model.bin",),
}


def write_export_list(folder: Path, runtime: str) -> None:
    """Write the list of all files in the folder of a finished export."""
    names = sorted(path.name for path in folder.iterdir())
    journal.write_json(folder / FILE, {"version": _VERSION, "runtime": runtime, "files": [*names, FILE]})


def is_export(folder: Path) -> bool:
    """Whether a folder is an export. With weights that no export wrote, it is a model, whatever is beside them."""
    listed, weights = _listed(folder), weight_files(folder)
    if listed is not None:
        return weights <= set(listed)
    marks = {name for name in _UNLISTED if (folder / name).is_file()}
    return bool(marks) and (not weights or _WITH_WEIGHTS in marks)


def is_exported(path: Path) -> bool:
    """Whether an export wrote this file of its folder."""
    listed = _listed(path.parent)
    if listed is not None:
        return path.name in listed
    marks = [name for name in _UNLISTED if (path.parent / name).is_file()]
    names = {CONFIG, GENERATION, *marks, *(name for mark in marks for name in _UNLISTED[mark])}
    return path.name in names or is_companion(path) or (_WITH_WEIGHTS in marks and is_weight_file(path))


def _listed(folder: Path) -> list[str] | None:
    """The names in the list of a folder; None if it has no list that can be read."""
    try:
        content = journal.read_json(folder / FILE)
    except RecordError:
        return None
    names = content.get("files") if isinstance(content, dict) else None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None
