"""The record that `headcount train` leaves in the folder of a model."""

from __future__ import annotations

from pathlib import Path

from headcount.errors import RecordError
from headcount.record.record import Record


def training_record(model: str) -> Record | None:
    """How a model was trained; None where its folder does not say, or in a form that this version does not read."""
    file = Path(model) / "record.json"
    try:
        record = Record.load(file) if model and file.is_file() else None
    except RecordError:
        return None
    return record if record is not None and record.study == "train" else None
