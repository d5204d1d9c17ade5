"""Ragged: rows of token ids of different lengths. Rows are views, also of files larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datasets import Dataset


class Ragged:
    """A sequence of integer rows, stored as a few flat arrays with the start of each row."""

    def __init__(self, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        """parts: (flat values, row starts and final end) of consecutive blocks of rows."""
        self._parts = list(parts)
        counts = [len(starts) - 1 for _, starts in self._parts]
        self._first = np.cumsum([0, *counts])  # index of the first row of each part
        self.lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(starts) for _, starts in self._parts)])

    @classmethod
    def of(cls, rows: Iterable[Sequence[int] | np.ndarray]) -> Ragged:
        arrays = [np.asarray(row, dtype=np.int32) for row in rows]
        starts = np.cumsum([0, *(len(row) for row in arrays)])
        return cls([(np.concatenate([np.zeros(0, np.int32), *arrays]), starts)])

    @classmethod
    def of_column(cls, dataset: Dataset, column: str) -> Ragged:
        """The rows of a column of lists, without a copy."""
        chunks = dataset.with_format("arrow").data.column(column).chunks
        return cls([(chunk.values.to_numpy(), chunk.offsets.to_numpy().astype(np.int64)) for chunk in chunks])

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, row: int) -> np.ndarray:
        part = int(np.searchsorted(self._first, row, side="right")) - 1
        values, starts = self._parts[part]
        row_in_part = row - int(self._first[part])
        return values[starts[row_in_part] : starts[row_in_part + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))

    def padded(self, rows: Sequence[int] | np.ndarray, padding: int) -> np.ndarray:
        """[rows, longest]: these rows, padded at the end."""
        picked = [self[int(row)] for row in rows]
        filled = np.full((len(picked), max(map(len, picked), default=0)), padding, dtype=np.int64)
        for index, row in enumerate(picked):
            filled[index, : len(row)] = row
        return filled

    def mask(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """[rows, longest]: 1 for the ids of these rows, 0 for padding. Ids cannot tell: some pad with the end token."""
        lengths = self.lengths[np.asarray(rows, dtype=np.int64)]
        return (np.arange(lengths.max(initial=0)) < lengths[:, None]).astype(np.int64)
