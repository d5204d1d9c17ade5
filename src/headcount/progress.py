"""Progress: how far a piece of work is, told to whoever shows it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]  # stage of the work, steps done, steps in all (0 where nobody knows)


def silent(stage: str, step: int, of: int) -> None:
    """Nobody watches."""


def named(name: str, progress: Progress) -> Progress:
    """The same progress under another name: that of the larger work which a piece belongs to."""
    return lambda _, step, of: progress(name, step, of)
