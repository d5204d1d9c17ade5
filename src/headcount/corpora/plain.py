"""Plain text: texts without labels, one per line or in a column of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from headcount.corpora.lines import read_lines
from headcount.corpora.location import Location
from headcount.corpora.splits import read_hub, split_files, split_of
from headcount.corpora.tables import SUFFIXES, TEXT_COLUMNS, find_column, read_rows, text_cell
from headcount.errors import CorpusError

SUFFIX = ".txt"
_NOT_LINES = (".conllu", ".conll", ".csv", ".json", ".ndjson", ".xml", ".html", *SUFFIXES)  # a line is not a text
_OPTION = "text= (--text-column)"


class PlainTexts(list[str]):
    """Texts, and the number of skipped texts by reason."""

    def __init__(self, texts: Iterable[str], skipped: Counter[str]) -> None:
        super().__init__(texts)
        self.skipped = skipped


def read_plain(
    data: str | Path, *, split: str | None = None, text: str | None = None, limit: int | None = None
) -> PlainTexts:
    """Non-empty texts, at most `limit`; empty ones are counted.

    place: a file of lines, a .tsv (with a header) or .jsonl file, a folder with SPLIT.txt, or hf:name[:config].
    text: column of a table or hub data set. By default the first that has a usual name of such columns.
    """
    texts: list[str] = []
    skipped: Counter[str] = Counter()
    for line in _texts(data, split, text):
        if len(texts) == limit:
            break
        if line.strip():
            texts.append(line.strip())
        else:
            skipped["empty"] += 1
    if not texts:
        raise CorpusError(f"{data} has no text. Give a file with one text per line, or a table with a column of texts.")
    return PlainTexts(texts, skipped)


def _texts(data: str | Path, split: str | None, column: str | None) -> Iterator[str]:
    location = Location.of(data)
    if location.kind == "hub":
        return _from_hub(location, split, column)
    file = location.path
    if location.kind == "folder":
        file = split_of(split_files(file, (SUFFIX,)), split, location.data)
    if not file.is_file():
        raise CorpusError(f"There is no file {file}. Give a text file with one text per line.")
    if file.suffix in SUFFIXES:
        return _from_table(file, column)
    if column and location.kind == "file":  # a folder may have tables too, for other tasks of the same source
        raise CorpusError(f"{file} has lines and no columns, but {_OPTION} names the column {column!r}. Leave it out.")
    check_lines(file, or_else="a table with a column of texts (.tsv, .jsonl)")
    return read_lines(file)


def check_lines(file: Path, *, or_else: str) -> None:
    """Raise if the lines of a file are not texts, by its name. or_else: what may be given besides such lines."""
    if file.suffix.lower() in _NOT_LINES:
        raise CorpusError(
            f"{file} is not plain text by its name: its lines would be read as texts. Give a file with one text per "
            f"line (.txt), or {or_else}."
        )


def _from_table(file: Path, column: str | None) -> Iterator[str]:
    for location, row in read_rows(file):
        if row:
            column = column or find_column(row, TEXT_COLUMNS, location, option=_OPTION)
        yield text_cell(row, column, location) if row and column else ""


def _from_hub(location: Location, split: str | None, column: str | None) -> Iterator[str]:
    name = location.data
    rows = split_of(read_hub(location.hub_name), split, name)
    text_column = find_column(rows.column_names, (column,) if column else TEXT_COLUMNS, name, option=_OPTION)
    return (text_cell(row, text_column, f"{name}, row {number}") for number, row in enumerate(rows))
