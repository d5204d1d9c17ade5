"""Lines of a text file, in constant memory; a line that is not UTF-8 is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headcount.errors import CorpusError


def read_lines(path: Path) -> Iterator[str]:
    """Each line without its end, of whichever system."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise CorpusError(f"{path}:{number} is not UTF-8: {error}.", reason="not UTF-8") from error
