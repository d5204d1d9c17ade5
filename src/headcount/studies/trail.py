"""Trail: the heads that a greedy search takes away, in order, kept on disk; a longer search goes on from it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headcount import journal, processes
from headcount.heads import Head, HeadGrid
from headcount.methods.greedy import Search


def follow(file: Path, begin: Callable[..., Search], gone: int) -> tuple[HeadGrid, float]:
    """The mask without so many heads, and the seconds that earlier searches took for their part of it.

    begin: makes the search, given the heads that are `gone` already.
    """
    steps = processes.gather(_read(file) if processes.is_main() else [])[0]  # of several processes the first one's
    known = steps[:gone]
    search = begin(gone=[Head.parse(step["head"]) for step in known])
    if len(known) < gone:  # to begin costs a run over the data
        started = time.perf_counter()
        for taken in search.steps([1] * (gone - len(known))):
            now = time.perf_counter()
            steps = [*steps, {"head": str(taken.heads[0]), "seconds": now - started}]
            started = now
            if processes.is_main() and len(steps) > len(_read(file)):  # another process may be further
                journal.write_json(file, steps)
    return search.mask, sum(step["seconds"] for step in known)


def _read(file: Path) -> list[dict[str, Any]]:
    return journal.read_json(file) if file.is_file() else []
