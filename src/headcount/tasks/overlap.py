"""Overlap: which examples several tasks share, told by hashes of the texts of each example."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from headcount.errors import UsageError
from headcount.tasks.task import Task


def example_hash(*texts: str) -> str:
    """Of the texts of one example: a text, or both of a pair. Its label does not count."""
    return hashlib.blake2b("\x1f".join(texts).encode(), digest_size=16).hexdigest()


def in_first_half(example: str) -> bool:
    """Whether an example of this hash is in the first half of its data: the same for copies of a text."""
    return int(example, 16) % 2 == 0


def measured_on(chosen_on: Iterable[Task], measured: Task) -> dict[str, Any]:
    """For a record: what a model is measured on, and whether its heads were chosen on other texts.

    chosen_on: everything that heads were chosen, calibrated or trained on.
    overlap: examples measured on that are among those; None where it cannot be told.
    """
    tasks = list({id(task): task for task in chosen_on}.values())
    same = any(task.fingerprint == measured.fingerprint for task in tasks)
    examples, chosen = _hashes(measured), [_hashes(task) for task in tasks]
    overlap = None
    if examples is not None and None not in chosen:
        seen = {example for hashes in chosen for example in hashes or ()}
        overlap = sum(example in seen for example in examples)
    return {
        **_described(measured),
        "chosen_on": [_described(task) for task in tasks],
        "overlap": overlap,
        "held_out": False if same else None if overlap is None else overlap == 0,
    }


def check_apart(learned: Task | None, measured: Task | None) -> None:
    """Raise where every example that is measured was learned from: quality would mean nothing."""
    if learned is None or measured is None:
        return
    shared = measured_on([learned], measured)
    every_example = shared["overlap"] is not None and shared["overlap"] == shared["examples"]
    if every_example or learned.fingerprint == measured.fingerprint:
        raise UsageError(
            "What is learned from and what is measured on are the same data. Choose another part of it for one of "
            "them; a single file has one part only: give a folder with train, dev and test."
        )


def _described(task: Task) -> dict[str, Any]:
    hashes = _hashes(task)
    return {"split": getattr(task, "split", None), "examples": None if hashes is None else len(hashes)}


def _hashes(task: Task) -> Sequence[str] | None:
    """Of each example of a task; None where only its batches are known."""
    return getattr(task, "example_hashes", None)
