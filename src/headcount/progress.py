"""Progress: callbacks that report how far a piece of work is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]  # stage, steps done, number of steps (0 if unknown)


def silent(stage: str, step: int, of: int) -> None:
    """Report nothing."""


class Finer:
    """Progress in equal parts of a step, for steps that take long: `step` reports steps, `part` parts of the next."""

    def __init__(self, progress: Progress, parts: int) -> None:
        self._progress, self._parts = progress, parts
        self._stage, self._step, self._of = "", 0, 0

    def step(self, stage: str, step: int, of: int) -> None:
        self._stage, self._step, self._of = stage, step, of
        self.part(0)

    def part(self, finished: int) -> None:
        """finished: parts of the step after the last reported one."""
        self._progress(self._stage, self._step * self._parts + finished, self._of * self._parts)


def named(name: str, progress: Progress) -> Progress:
    """The same progress callback with a fixed stage name."""
    return lambda _, step, of: progress(name, step, of)
