"""Plain text: one text per line."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from headcount.corpora.lines import read_lines
from headcount.corpora.splits import read_hub, split_files, split_of
from headcount.errors import CorpusError

SUFFIX = ".txt"


def read_plain(
    place: str | Path, *, split: str | None = None, text: str | None = None, limit: int | None = None
) -> list[str]:
    """Texts that are not empty, at most so many: lines of a file, of SPLIT.txt in a folder, rows of hf:name[:config].

    text: the column of a hub data set.
    """
    if str(place).startswith("hf:"):
        return _from_hub(str(place), split, text or "text", limit)
    file = Path(place)
    if file.is_dir():
        file = split_of(split_files(file, (SUFFIX,)), split, str(place))
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


def _from_hub(place: str, split: str | None, column: str, limit: int | None) -> list[str]:
    rows = split_of(read_hub(place.removeprefix("hf:")), split, place)
    if column not in rows.column_names:
        raise CorpusError(f"{place} has the columns {', '.join(rows.column_names)}; say which is the text with text=.")
    texts = [found.strip() for found in islice((row[column] for row in rows), limit) if found.strip()]
    if not texts:
        raise CorpusError(f"{place} has no text.")
    return texts
