"""The result of a whole study of several models: the study of each, and the claims decided on all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.record import Record
from headcount.record.result import Result


@dataclass(frozen=True)
class Pool(Result):
    """Whole studies by the name of their model, and one ledger."""

    name: str  # of the whole study
    studies: Mapping[str, Record]  # model -> its combined record, without a ledger of its own
    ledger: Record


RESULT = Pool
