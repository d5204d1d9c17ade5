"""Held-out data: what is measured must not have been learned, chosen or calibrated on."""

from __future__ import annotations

from headcount.errors import UsageError
from headcount.tasks.task import Task


def check_apart(learned: Task, measured: Task | None) -> None:
    """Raise where both are the same texts: quality would mean nothing."""
    if measured is not None and learned.fingerprint == measured.fingerprint:
        raise UsageError(
            "What is learned from and what is measured on are the same data. Choose another part of it for one of "
            "them; a single file has one part only: give a folder with train, dev and test."
        )
