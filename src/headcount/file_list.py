"""The list of the files that were written into a folder of unfinished work, in a hidden file of that folder.

Knows names alone: `journal` adds what it writes, and removes what is listed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

NAME = ".headcount.list"
_open: dict[Path, set[str]] = {}  # folder whose files are listed -> those that this process has listed


@contextlib.contextmanager
def listing(folder: Path) -> Iterator[None]:
    """Inside the block, list what is written into a folder, as a run that is killed cannot do it at its end."""
    root = folder.resolve()
    _open[root] = set()
    try:
        yield
    finally:
        _open.pop(root, None)


def add(file: Path) -> None:
    """Add a file to the list of its folder, if it has one, before it gets its name."""
    path = file.resolve() if _open else file
    for root, names in _open.items():
        if path.is_relative_to(root):
            if not (root / NAME).is_file():  # not yet, or another process has finished the work
                names.clear()
            name = str(path.relative_to(root))
            if name not in names:
                _add_line(root / NAME, name)
                names.add(name)


def _add_line(file: Path, name: str) -> None:
    """Add a name to a list, which several processes may do. Half a line, of a full disk, ends where the next begins."""
    try:
        with open(file, "a", encoding="utf-8") as stream:
            stream.write(f"\n{json.dumps(name)}\n")
    except OSError:
        if file.is_file() and not file.stat().st_size:
            file.unlink()
        raise


def names(folder: Path) -> set[str]:
    """Paths of the files that were written into a folder, within it; the list itself is one of them."""
    listed = {NAME}
    for line in (folder / NAME).read_text(encoding="utf-8").splitlines() if (folder / NAME).is_file() else ():
        with contextlib.suppress(json.JSONDecodeError):  # an empty line, or half of one
            listed.add(str(json.loads(line)))
    return listed
