"""Trail: the steps of a greedy search on disk; a longer search, or one that was interrupted, resumes from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount import journal, processes
from headcount.heads import HeadGrid
from headcount.pruning.search import Search, Taken


@dataclass(frozen=True)
class Trail:
    """Where the steps are; nowhere without a file."""

    file: Path | None

    def read(self) -> list[dict[str, Any]]:
        return journal.read_json(self.file) if self.file and self.file.is_file() else []

    def write(self, steps: Sequence[dict[str, Any]]) -> None:
        if self.file and processes.is_main() and len(steps) > len(self.read()):  # another process may be further
            journal.write_json(self.file, list(steps))


def follow(
    trail: Trail,
    search: Search,
    sizes: Sequence[int],
    *,
    at_least: int = 0,
    reached: Callable[[HeadGrid], bool] = lambda _: False,
) -> tuple[list[Taken], float]:
    """Take so many heads at each step, until a mask is `reached`; the steps, and the seconds that they took.

    Steps of the trail that have the same sizes are read, not searched again: their seconds are those of then.
    """
    steps: list[dict[str, Any]] = []
    for step, size in zip(processes.gather(trail.read())[0], sizes, strict=False):  # the first process's
        if len(step["removed"]) != size:
            break
        steps.append(step)
        search.take(Taken.read(step).heads)
        if reached(search.mask):
            return _summed(steps)
    if len(steps) < len(sizes):  # to begin costs a run over the data
        started = time.perf_counter()
        for search_step in search.steps(sizes[len(steps) :], at_least=at_least):
            steps.append({**search_step.to_plain(), "seconds": time.perf_counter() - started})
            trail.write(steps)
            if reached(search.mask):
                break
            started = time.perf_counter()
    return _summed(steps)


def _summed(steps: Sequence[dict[str, Any]]) -> tuple[list[Taken], float]:
    return [Taken.read(step) for step in steps], sum(step["seconds"] for step in steps)
