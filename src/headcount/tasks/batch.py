"""Batches of examples: built lazily, hashed, repeated."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral, Number
from operator import length_hint
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount.errors import UsageError, check_type

Batch = Mapping[str, Any]

_BY_EXAMPLE = ("input_ids", "inputs_embeds", "pixel_values", "input_features", "input_values", "labels")
_TEXTS = ("input_ids", "inputs_embeds", "decoder_input_ids", "decoder_inputs_embeds")


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
        elif isinstance(item, np.ndarray):
            digest.update(f"{item.shape}{item.tolist()!r};".encode())
        elif isinstance(item, Mapping):
            for key in sorted(item):
                digest.update(f"{key}=".encode())
                add(item[key])
        elif isinstance(item, list | tuple) and holds_arrays(item):
            digest.update(f"{len(item)}:".encode())
            for part in item:
                add(part)
        else:
            digest.update(f"{item!r};".encode())

    for item in items:
        add(item)
    return digest.hexdigest()


def holds_arrays(item: object) -> bool:
    """Whether an item is a tensor or array, or has one inside it: their text is shortened above 1000 elements."""
    if isinstance(item, Mapping):
        return any(map(holds_arrays, item.values()))
    return isinstance(item, Tensor | np.ndarray) or (isinstance(item, list | tuple) and any(map(holds_arrays, item)))


def has_content(item: object) -> bool:
    """Whether two items can be compared by their hashes: arrays, texts, numbers, and lists and mappings of them."""
    if isinstance(item, Mapping):
        return all(isinstance(key, str) for key in item) and all(map(has_content, item.values()))
    if isinstance(item, list | tuple):
        return all(map(has_content, item))
    return item is None or isinstance(item, Tensor | np.ndarray | np.generic | str | bytes | Number)


def named_tensors(batch: Any) -> dict[str, Tensor]:
    """The tensors of a batch by name, or by index in a list."""
    items = batch.items() if isinstance(batch, Mapping) else enumerate(batch) if isinstance(batch, list | tuple) else ()
    return {str(name): value for name, value in items if isinstance(value, Tensor)}


def rows_of(batch: Batch) -> int:
    """Number of examples in a batch: the length that most inputs of models and labels have, or else most tensors.

    Of equals the first counts. Without an input of a known name, tensors of one row among longer ones, such as
    positions [1, T], are for all examples.
    """
    lengths = {name: len(value) for name, value in named_tensors(batch).items() if value.dim()}
    if not lengths:
        names = ", ".join(map(str, batch)) or "nothing"
        raise UsageError(f"A batch needs a tensor with one row per example, such as input_ids; it has {names}.")
    counted = [lengths[name] for name in _BY_EXAMPLE if name in lengths]
    counted = counted or [length for length in lengths.values() if length > 1] or [1]
    return Counter(counted).most_common(1)[0][0]


def has_rows(batch: Batch) -> bool:
    """Whether a batch has a tensor with rows. One of texts that the loss tokenises has none."""
    return any(value.dim() for value in named_tensors(batch).values())


def most_rows(batch: Batch) -> int:
    """Rows of the longest tensor of a batch: of images if they are more than the texts they are compared with."""
    return max(len(value) for value in named_tensors(batch).values() if value.dim())


def by_example(batch: Batch) -> list[str]:
    """Names of the tensors with one row per example. Others are for all examples: class weights, a temperature."""
    rows, tensors = rows_of(batch), named_tensors(batch)
    return [name for name, value in tensors.items() if value.dim() and len(value) == rows]


def first_example(batch: Batch) -> Batch:
    """The batch with its first example only."""
    return {**batch, **{name: batch[name][:1] for name in by_example(batch)}}


def token_count(batch: Batch) -> int | None:
    """Tokens of each example, padding included: of the longest text if there are several. None without texts."""
    texts = [batch[name] for name in _TEXTS if batch.get(name) is not None]
    return max((text.shape[1] for text in texts), default=None)


def repeated(batch: Batch, times: int) -> Batch:
    """The same examples several times."""
    if times == 1:
        return batch
    rows = {name: batch[name].repeat(times, *(1,) * (batch[name].dim() - 1)) for name in by_example(batch)}
    return {**batch, **rows}


def chunks(count: int, size: int) -> Iterator[range]:
    """The indices 0 to count in ranges of at most `size`."""
    check_type("batch_size", size, Integral, "a whole number")
    if size < 1:
        raise UsageError(f"batch_size must be at least 1; got {size}.")
    return (range(start, min(start + size, count)) for start in range(0, count, size))
