"""Held-out data: what is measured must not have been learned, chosen or calibrated on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def measured_line(measured: Mapping[str, Any]) -> str:
    """One sentence on the `measured_on` of a record: which texts, and whether they were held out."""
    texts, overlap = _texts(measured), measured["overlap"]
    if measured["held_out"]:
        chosen = " and ".join(dict.fromkeys(map(_texts, measured["chosen_on"])))
        return f"Measured on {texts}, held out: heads were chosen on {chosen}."
    if measured["held_out"] is None:
        return f"Measured on {texts}. Whether heads were chosen on the same examples is unknown."
    if overlap is None or overlap == measured["examples"]:
        return f"NOT held out: measured on {texts}, the same that heads were chosen on."
    return f"NOT all held out: measured on {texts}, and heads were chosen on {overlap} of them."


def _texts(data: Mapping[str, Any]) -> str:
    """Such as `40 texts of test`."""
    count = data["examples"]
    texts = "examples" if count is None else "1 text" if count == 1 else f"{count} texts"
    return f"{texts} of {data['split']}" if data["split"] else texts
