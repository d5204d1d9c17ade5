"""Batches: the data of a task, built lazily, with a known number of batches for progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


class Batches(Iterator[Any]):
    """make: function from row indices to a batch."""

    def __init__(self, make: Callable[[Any], Any], rows: Sequence[object]) -> None:
        self._made, self._count = map(make, rows), len(rows)

    def __next__(self) -> Any:
        return next(self._made)

    def __len__(self) -> int:
        """Number of all batches, including those already yielded."""
        return self._count
