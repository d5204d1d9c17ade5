"""Batches of examples: built lazily, hashed, repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import length_hint
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError

Batch = Mapping[str, Any]


class Batches(Iterator[Batch]):
    """The data of a task, built lazily, with a known number of batches for progress bars."""

    def __init__(self, make: Callable[[Any], Any], rows: Iterable[object]) -> None:
        """make: function from row indices to a batch."""
        self._made, self._count = map(make, rows), length_hint(rows)

    def __next__(self) -> Any:
        return next(self._made)

    def __len__(self) -> int:
        """Number of all batches, including those already yielded; 0 if it is not known."""
        return self._count


def fingerprint(items: Iterable[object]) -> str:
    """A hash of texts, labels or batches."""
    digest = hashlib.blake2b(digest_size=20)

    def add(item: object) -> None:
        if isinstance(item, Tensor):
            digest.update(str(tuple(item.shape)).encode())
            digest.update(item.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        elif isinstance(item, Mapping):
            for key in sorted(item):
                digest.update(f"{key}=".encode())
                add(item[key])
        else:
            digest.update(f"{item!r};".encode())

    for item in items:
        add(item)
    return digest.hexdigest()


def named_tensors(batch: Any) -> dict[str, Tensor]:
    """The tensors of a batch by name, or by index in a list."""
    items = batch.items() if isinstance(batch, Mapping) else enumerate(batch) if isinstance(batch, list | tuple) else ()
    return {str(name): value for name, value in items if isinstance(value, Tensor)}


def rows_of(batch: Batch) -> int:
    """Number of examples in a batch."""
    return next(len(value) for value in batch.values() if isinstance(value, Tensor))


def repeated(batch: Batch, times: int) -> Batch:
    """The same examples several times."""
    if times == 1:
        return batch
    return {
        name: value.repeat(times, *(1,) * (value.dim() - 1)) if isinstance(value, Tensor) else value
        for name, value in batch.items()
    }


def chunks(count: int, size: int) -> Iterator[range]:
    """The indices 0 to count in ranges of at most `size`."""
    if size < 1:
        raise UsageError(f"batch_size must be at least 1; got {size}.")
    return (range(start, min(start + size, count)) for start in range(0, count, size))
