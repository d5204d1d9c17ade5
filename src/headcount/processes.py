"""Processes that share a piece of work, as `accelerate launch` starts them. One process is the usual case."""

from __future__ import annotations

import os
from typing import TypeVar

Value = TypeVar("Value")


def count() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Number of this process, from 0."""
    return int(os.environ.get("RANK", "0"))


def is_main() -> bool:
    return rank() == 0


def is_mine(number: int) -> bool:
    """Whether a piece of the work is this process's: pieces are dealt out in turn."""
    return number % count() == rank()


def gather(value: Value) -> list[Value]:
    """The values of all processes, in their order, known to each of them."""
    if count() == 1:
        return [value]
    from accelerate import PartialState
    from accelerate.utils import gather_object

    PartialState()  # joins the processes where nothing has done so yet
    found: list[Value] = gather_object([value])
    return found
