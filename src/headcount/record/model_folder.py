"""Records that commands leave in the folder of a model."""

from __future__ import annotations

from pathlib import Path

from headcount.errors import RecordError
from headcount.record.record import Record

RECORD = "record.json"


def folder_record(model: str, study: str) -> Record | None:
    """The record of a study in the folder of a model; None if it has none that this version can read."""
    file = Path(model) / RECORD
    try:
        record = Record.load(file) if model and file.is_file() else None
    except RecordError:
        return None
    return record if record is not None and record.study == study else None


def training_record(model: str) -> Record | None:
    """The record of `headcount train`."""
    return folder_record(model, "train")
