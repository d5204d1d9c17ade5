"""Processes that share work, as started by `accelerate launch`. Usually there is only one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from headcount.errors import UsageError

Value = TypeVar("Value")


def count() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Rank of this process, from 0."""
    return int(os.environ.get("RANK", "0"))


def is_main() -> bool:
    return rank() == 0


def is_mine(number: int) -> bool:
    """Whether this process does a piece of the work: pieces are distributed in turn."""
    return number % count() == rank()


def mine(items: Iterable[Value]) -> Iterator[Value]:
    """The pieces of the work that this process does."""
    return (item for number, item in enumerate(items) if is_mine(number))


def state() -> Any:
    """The state of accelerate. The first call in a process decides whether the processes are joined, for good."""
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    return PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU"))  # it does not read this flag itself


def gather(value: Value) -> list[Value]:
    """The values of all processes, in order of rank, returned to every process."""
    if count() == 1:
        return [value]
    from accelerate.utils import gather_object

    joined = state().num_processes
    if joined != count():
        raise UsageError(
            f"WORLD_SIZE says that {count()} processes share the work, but accelerate has joined {joined}. Start them "
            "by `accelerate launch` on GPUs, by `ACCELERATE_USE_CPU=true torchrun --nproc-per-node N` on CPUs."
        )
    return gather_object([value])
