"""The record that `headcount train` leaves in the folder of a model."""

from __future__ import annotations

from pathlib import Path

from headcount.errors import RecordError
from headcount.record.record import Record


def training_record(model: str) -> Record | None:
    """The training record of a model; None if its folder has none that this version can read."""
    file = Path(model) / "record.json"
    try:
        record = Record.load(file) if model and file.is_file() else None
    except RecordError:
        return None
    return record if record is not None and record.study == "train" else None
