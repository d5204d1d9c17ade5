"""Trail: the steps of a greedy search on disk; a longer search, or one that was interrupted, resumes from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headcount import journal, processes
from headcount.heads import Head, HeadGrid
from headcount.pruning.search import Search
from headcount.record.codec import decode, encode
from headcount.record.results.prune import SearchStep

_PREFIX = "greedy-"


@dataclass(frozen=True)
class Trail:
    """The file of the steps; None stores nothing."""

    file: Path | None

    @classmethod
    def inside(cls, folder: Path | None, name: str) -> Trail:
        """The steps of a search with this name in a folder; without a folder, nothing is stored."""
        return cls(folder / f"{_PREFIX}{name}.json" if folder else None)

    def read(self) -> tuple[SearchStep, ...]:
        if self.file is None or not self.file.is_file():
            return ()
        return decode(tuple[SearchStep, ...], journal.read_json(self.file), source=str(self.file))

    def write(self, steps: Sequence[SearchStep]) -> None:
        if self.file and processes.is_main() and len(steps) > len(self.read()):  # another process may have more steps
            journal.write_json(self.file, encode(steps))


def follow(
    trail: Trail,
    search: Search,
    sizes: Sequence[int],
    *,
    reached: Callable[[HeadGrid], bool] = lambda _: False,
) -> tuple[SearchStep, ...]:
    """Remove this many heads at each step until a mask is `reached`; return the steps.

    Saved steps of the same sizes are read, not searched again, with their original seconds.
    """
    steps: list[SearchStep] = []
    for step, size in zip(processes.gather(trail.read())[0], sizes, strict=False):  # of the first process
        heads = [Head.parse(name) for name in step.removed_heads]
        if not search.is_step(heads, size):
            break
        steps.append(step)
        search.take(heads)
        if reached(search.mask):
            return tuple(steps)
    if len(steps) < len(sizes):  # starting the search costs a run over the data
        started = time.perf_counter()
        for search_step in search.steps(sizes[len(steps) :]):
            steps.append(search_step.to_result(time.perf_counter() - started))
            trail.write(steps)
            if reached(search.mask):
                break
            started = time.perf_counter()
    return tuple(steps)


def has_trail(folder: Path) -> bool:
    """Whether a folder has steps of a search."""
    return any(_files(folder))


def finished(folder: Path, steps: Sequence[SearchStep]) -> list[Path]:
    """Files of searches that have no steps besides those that were taken."""
    return [file for file in _files(folder) if all(step in steps for step in Trail(file).read())]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{_PREFIX}*.json"))
