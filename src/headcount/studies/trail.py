"""Trail: the heads that a greedy search takes away, in order, kept on disk; a longer search goes on from it."""

from __future__ import annotations

import time
from pathlib import Path

from headcount import journal, processes
from headcount.heads import Head, HeadGrid
from headcount.methods.greedy import Search


def follow(file: Path, search: Search, gone: int) -> tuple[HeadGrid, float]:
    """The mask without so many heads, and the seconds that earlier searches took for their part of it."""
    own = journal.read_json(file) if processes.is_main() and file.is_file() else []
    steps = processes.gather(own)[0]  # of several processes the first one's
    known = steps[:gone]
    search.mask = search.mask.replace({Head.parse(step["head"]): 0 for step in known})
    started = time.perf_counter()
    for taken in search.steps([1] * (gone - len(known))):
        now = time.perf_counter()
        steps = [*steps, {"head": str(taken.heads[0]), "seconds": now - started}]
        started = now
        if processes.is_main():
            journal.write_json(file, steps)
    return search.mask, sum(step["seconds"] for step in known)
