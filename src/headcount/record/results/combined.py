"""The result of whole studies and of `headcount explore`: records of several studies of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headcount.record.record import Record
from headcount.record.result import Result


@dataclass(frozen=True)
class Combined(Result):
    """Records by part, and the reasons for missing parts."""

    name: str  # of the whole study
    records: Mapping[str, Record]
    missing: Mapping[str, str]  # part -> why it could not be measured
    settings: Mapping[str, Any]  # of the whole study


RESULT = Combined
