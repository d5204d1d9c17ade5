"""Held-out data: what is measured must not have been learned, chosen or calibrated on."""

from __future__ import annotations

from headcount.errors import UsageError
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Task


def check_apart(learned: Task, measured: Task | None) -> None:
    """Raise where every example that is measured was learned from: quality would mean nothing."""
    if measured is None:
        return
    shared = measured_on([learned], measured)
    every_example = shared["overlap"] is not None and shared["overlap"] == shared["examples"]
    if every_example or learned.fingerprint == measured.fingerprint:
        raise UsageError(
            "What is learned from and what is measured on are the same data. Choose another part of it for one of "
            "them; a single file has one part only: give a folder with train, dev and test."
        )
