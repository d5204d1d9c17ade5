"""Tables: rows of .tsv and .jsonl files, with their location for error messages, and the cells of a row."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.corpora.lines import check_text, read_lines
from headcount.errors import CorpusError

SUFFIXES = (".tsv", ".jsonl")
TEXT_COLUMNS = ("text", "sentence", "content", "sentence1", "premise")  # usual names, the likeliest first
Row = Mapping[str, Any]
_QUOTED = re.compile(r'"[^"]*(""[^"]*)+"')  # a cell in quotes with the quotes inside it doubled, as CSV writers do
_TYPES = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}


def read_rows(path: Path, *, header: Sequence[str] | None = None) -> Iterator[tuple[str, Row]]:
    """(file:line, row) of every line; an empty line is an empty row.

    header: column names of a .tsv file without a header line.
    """
    if path.suffix not in SUFFIXES:
        raise CorpusError(f"{path} is neither .tsv nor .jsonl.")
    if not path.is_file():
        raise CorpusError(f"There is no file {path}.")
    return _jsonl(path) if path.suffix == ".jsonl" else _tsv(path, header)


def find_column(columns: Iterable[str], usual: Sequence[str], location: str, *, option: str) -> str:
    """The first of the usual names that is a column. option: what names another one, in Python and as a flag."""
    present = list(columns)
    column = next((name for name in usual if name in present), None)
    if column is None:
        what = option.partition("=")[0]
        raise CorpusError(f"{location} has the columns {', '.join(present)}; say which is the {what} with {option}.")
    return column


def text_cell(row: Row, column: str, location: str) -> str:
    """The text in a column. Raises for other types, also for numbers: their spelling in the file is lost."""
    value = _cell(row, column, location)
    if not isinstance(value, str):
        hint = ", such as a number in quotes" if isinstance(value, int | float) and not isinstance(value, bool) else ""
        raise _wrong_type(value, column, location, f"text{hint}")
    check_text(value, f"{location}, column {column!r},")
    return value


def label_cell(row: Row, column: str, location: str) -> str | int:
    """The label in a column: text or a whole number."""
    value = _cell(row, column, location)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _wrong_type(value, column, location, "a class number (0, 1, 2 ...) or a class name")
    return value if isinstance(value, int) else text_cell(row, column, location)


def parse_json(text: str, location: str) -> Any:
    """The content of JSON text. Raises with location and cause if it cannot be read."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
            raise CorpusError(
                f"{location} has the key {twice!r:.40} twice in one object. Keys must be unique.", reason="not JSON"
            )
        return content

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise CorpusError(f"{location} is not JSON: {error}.", reason="not JSON") from error
    except RecursionError as error:
        raise CorpusError(f"{location} is JSON that is nested too deeply.", reason="not JSON") from error
    except ValueError as error:  # Python reads whole numbers of 4300 digits at most
        raise CorpusError(f"{location} has a number of too many digits: {error}.", reason="not JSON") from error


def json_type(value: object) -> str:
    """The JSON name of the type of a value."""
    return "null" if value is None else _TYPES.get(type(value), f"a {type(value).__name__}")


def _tsv(path: Path, header: Sequence[str] | None) -> Iterator[tuple[str, Row]]:
    lines = enumerate(read_lines(path), start=1)
    names = list(header) if header is not None else next(lines, (0, ""))[1].split("\t")
    if len(set(names)) < len(names):
        raise CorpusError(
            f"{path}:1 has two columns of the same name: {', '.join(names)}. Column names must be unique."
        )
    warned = False
    for number, line in lines:
        location, cells = f"{path}:{number}", line.split("\t")
        if not warned and any(map(_QUOTED.fullmatch, cells)):
            warned = True
            warnings.warn(
                f"{location} has a cell in quotes with doubled quotes inside, as CSV writers put them (to_csv of "
                "pandas). Cells of .tsv files are read as they stand, with these quotes. If they are not part of the "
                "text, write the table without quoting, or as .jsonl.",
                stacklevel=2,
            )
        if line and len(cells) != len(names):
            raise CorpusError(f"{location} has {len(cells)} columns, expected {len(names)}: {', '.join(names)}.")
        yield location, dict(zip(names, cells, strict=True)) if line else {}


def _jsonl(path: Path) -> Iterator[tuple[str, Row]]:
    for number, line in enumerate(read_lines(path), start=1):
        location = f"{path}:{number}"
        row = parse_json(line, location) if line.strip() else {}
        if not isinstance(row, Mapping):
            raise CorpusError(f"{location} is {json_type(row)}, expected a JSON object with one entry per column.")
        yield location, row


def _cell(row: Row, column: str, location: str) -> Any:
    if column not in row:
        raise CorpusError(f"{location} has no column {column!r}; it has {', '.join(row)}.")
    return row[column]


def _wrong_type(value: object, column: str, location: str, allowed: str) -> CorpusError:
    content = f" ({json.dumps(value):.40})" if isinstance(value, int | float) else ""
    return CorpusError(f"{location} has {json_type(value)}{content} in column {column!r}; allowed is {allowed}.")
