"""Tables: rows of .tsv and .jsonl files, with the place of each for error messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.corpora.lines import read_lines
from headcount.errors import CorpusError

SUFFIXES = (".tsv", ".jsonl")
Row = Mapping[str, Any]


def read_rows(path: Path, *, header: Sequence[str] | None = None) -> Iterator[tuple[str, Row]]:
    """(file:line, row) of every line; an empty line is an empty row.

    header: names of the columns of a .tsv file that has no first line with them.
    """
    if path.suffix not in SUFFIXES:
        raise CorpusError(f"{path} is neither .tsv nor .jsonl.")
    if not path.is_file():
        raise CorpusError(f"There is no file {path}.")
    return _jsonl(path) if path.suffix == ".jsonl" else _tsv(path, header)


def _tsv(path: Path, header: Sequence[str] | None) -> Iterator[tuple[str, Row]]:
    lines = enumerate(read_lines(path), start=1)
    names = list(header) if header is not None else next(lines, (0, ""))[1].split("\t")
    for number, line in lines:
        where, cells = f"{path}:{number}", line.split("\t")
        if line and len(cells) != len(names):
            raise CorpusError(f"{where} has {len(cells)} columns, expected {len(names)}: {', '.join(names)}.")
        yield where, dict(zip(names, cells, strict=True)) if line else {}


def _jsonl(path: Path) -> Iterator[tuple[str, Row]]:
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            row = json.loads(line) if line.strip() else {}
        except json.JSONDecodeError as error:
            raise CorpusError(f"{where} is not JSON: {error}.") from error
        if not isinstance(row, Mapping):
            raise CorpusError(f"{where} is a {type(row).__name__}, expected an object with named texts.")
        yield where, row
