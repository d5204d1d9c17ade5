"""Pieces: contributions of the batches of a task to a measurement, shared by processes and saved until it is finished.

A piece has the number of its batch. Process r of n takes every n-th piece from r. A resumed run reads the
saved pieces, and its result is that of an uninterrupted run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import length_hint
from pathlib import Path
from typing import TypeVar

import numpy as np
from torch import nn

from headcount import processes
from headcount.errors import UsageError
from headcount.journal import Shelf, remove_folder
from headcount.progress import Progress, silent
from headcount.sites.fingerprint import config_hash
from headcount.tasks.task import Task, token_hash

Batch = TypeVar("Batch")
Arrays = Mapping[str, np.ndarray]

NO_BATCHES = "The task has no batches: there is nothing to measure on."
SECONDS = 20.0  # between two saves of the sums


def shelf(folder: Path | None, model: nn.Module, task: Task, work: Mapping[str, object]) -> Shelf | None:
    """The shelf for unfinished work of this process with a model on a task; None without a folder."""
    if folder is None:
        return None
    settings = {**work, "config": config_hash(model, writes=task.writes), "task": dict(task.identity)}
    if task.tokenizer is not None:
        settings["tokens"] = token_hash(task)
    return Shelf(_own_folder(folder), settings)


def remove_pieces(folder: Path) -> None:
    """Remove the pieces of this process from a folder of unfinished work."""
    remove_folder(_own_folder(folder))


def _own_folder(folder: Path) -> Path:
    return folder / f"{processes.rank()}-of-{processes.count()}"


def summed(
    batches: Iterable[Batch],
    measure: Callable[[Batch], Arrays],
    *,
    finished: Shelf | None = None,
    progress: Progress = silent,
) -> dict[str, np.ndarray]:
    """Sums of the contributions of all batches, in float64. Memory does not grow with the data."""
    stored = (finished.get("sums") if finished else None) or {}
    start = int(stored.pop("batches", np.zeros(())))
    sums: dict[str, np.ndarray] = dict(stored)
    saved, end = time.monotonic(), start
    for number, batch in _numbered(batches, progress, start):
        for name, value in measure(batch).items():
            sums[name] = sums.get(name, 0.0) + np.asarray(value, dtype=np.float64)
        end = number + 1
        if finished and time.monotonic() - saved >= SECONDS:
            finished.put("sums", {**sums, "batches": np.array(end)})
            saved = time.monotonic()
    if finished and end > start:
        finished.put("sums", {**sums, "batches": np.array(end)})
    shares = [share for share in processes.gather(sums) if share]
    if not shares:
        raise UsageError(NO_BATCHES)
    return {name: sum((share[name] for share in shares[1:]), shares[0][name]) for name in shares[0]}


def collected(
    batches: Iterable[Batch],
    measure: Callable[[Batch], Arrays],
    *,
    finished: Shelf | None = None,
    progress: Progress = silent,
) -> list[Arrays]:
    """Contributions of all batches, in order."""
    pieces: dict[int, Arrays] = {}
    for number, batch in _numbered(batches, progress):
        piece = finished.get(str(number)) if finished else None
        if piece is None:
            piece = dict(measure(batch))
            if finished:
                finished.put(str(number), piece)
        pieces[number] = piece
    by_number = {number: piece for share in processes.gather(pieces) for number, piece in share.items()}
    if not by_number:
        raise UsageError(NO_BATCHES)
    return [by_number[number] for number in sorted(by_number)]


def _numbered(batches: Iterable[Batch], progress: Progress, start: int = 0) -> Iterator[tuple[int, Batch]]:
    """The batches of this process from `start` on, with their numbers; all batches count as progress."""
    of = length_hint(batches)
    progress("batches", 0, of)
    for number, batch in enumerate(batches):
        if number >= start and processes.is_mine(number):
            yield number, batch
        progress("batches", number + 1, of)
