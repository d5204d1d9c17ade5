"""Overlap: which examples several tasks share, compared by hashes of the texts of each example."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headcount.errors import UsageError
from headcount.record.result import MeasuredOn, Texts
from headcount.tasks.task import Task


@dataclass(frozen=True)
class Examples:
    """The examples of a task without their texts."""

    split: str | None
    fingerprint: str  # hash of all of them
    example_hashes: tuple[str, ...] | None  # None if only batches were known

    @classmethod
    def of(cls, task: Identified) -> Examples:
        hashes = task.example_hashes
        return cls(task.split, task.fingerprint, None if hashes is None else tuple(hashes))


UNKNOWN = Examples(None, "", None)  # that nothing is known of
Identified = Task | Examples  # data whose examples can be compared; `Examples` were written down by an earlier run


def measured_on(chosen_on: Iterable[Identified], measured: Identified) -> MeasuredOn:
    """For a record: the examples a model is measured on, and how many of them its heads were chosen on.

    chosen_on: everything that heads were chosen, calibrated or trained on. Where only a part of it is known, the
        overlap is with that part, if there is any.
    """
    tasks = list({id(task): task for task in chosen_on}.values())
    same = any(task.fingerprint == measured.fingerprint for task in tasks)
    examples, chosen_hashes = measured.example_hashes, [task.example_hashes for task in tasks]
    overlap = None
    if examples is not None:
        seen = {example for hashes in chosen_hashes for example in hashes or ()}
        overlap = sum(example in seen for example in examples)
        if None in chosen_hashes and not overlap:  # others may be among those that are not known
            overlap = None
    texts = _texts(measured)
    return MeasuredOn(
        texts.split,
        texts.examples,
        chosen_on=tuple(map(_texts, tasks)),
        overlap=overlap,
        held_out=False if same else None if overlap is None else overlap == 0,
    )


def check_apart(learned: Task | None, measured: Task | None) -> None:
    """Raise an error if every evaluation example is in the training data: the quality would be meaningless."""
    if learned is None or measured is None:
        return
    if measured_on([learned], measured).all_seen:
        raise UsageError(
            "Every evaluation text is also in the training data. Choose another split for one of them; "
            "a single file has only one split: give a folder with train, dev and test."
        )


def _texts(task: Identified) -> Texts:
    hashes = task.example_hashes
    return Texts(task.split, None if hashes is None else len(hashes))
