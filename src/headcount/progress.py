"""Progress: callbacks that report how far a piece of work is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]  # stage, steps done, number of steps (0 if unknown)


def silent(stage: str, step: int, of: int) -> None:
    """Report nothing."""


def named(name: str, progress: Progress) -> Progress:
    """The same progress callback with a fixed stage name."""
    return lambda _, step, of: progress(name, step, of)
