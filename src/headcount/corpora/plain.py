"""Plain text: one text per line."""

from __future__ import annotations

from pathlib import Path

from headcount.corpora.lines import read_lines
from headcount.errors import CorpusError


def read_plain(path: str | Path, *, limit: int | None = None) -> list[str]:
    """The lines of a file that are not empty, at most so many."""
    file = Path(path)
    if not file.is_file():
        raise CorpusError(f"There is no file {file}. Give a text file with one text per line.")
    texts: list[str] = []
    for line in read_lines(file):
        if limit is not None and len(texts) == limit:
            break
        if line.strip():
            texts.append(line.strip())
    if not texts:
        raise CorpusError(f"{file} has no text.")
    return texts
