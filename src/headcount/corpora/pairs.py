"""Pair files: sentence pairs of one split, in two files of lines or one table, memory-mapped by `datasets`."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.corpora.lines import read_lines
from headcount.corpora.tables import read_rows, text_cell
from headcount.errors import CorpusError, FolderError

if TYPE_CHECKING:
    from datasets import Dataset

_READER = 2  # version in the key of cached pairs; increase it if the same files are read differently
# fmt: off
_COLUMN_NAMES = {
    "source", "target", "src", "tgt", "trg", "original", "translation", "text", "sentence", "sentence1", "sentence2",
    "label", "labels", "class", "category", "id",
    "english", "german", "french", "spanish", "italian", "portuguese", "dutch", "russian", "chinese", "japanese",
}
# fmt: on
_LANGUAGE_CODE = re.compile(r"[a-z]{2}([-_][a-z]{2,4})?")  # en, pt-br, zh_hans
Pair = dict[str, str]  # {"source": ..., "target": ...}


@dataclass(frozen=True)
class PairFiles:
    """The files of one split: two files of lines, or one table."""

    paths: tuple[Path, ...]
    columns: tuple[str, str]
    longest: int  # words

    @property
    def name(self) -> str:
        return " with ".join(path.name for path in self.paths)

    def pairs(self) -> Iterator[tuple[str, str]]:
        if len(self.paths) == 2:
            return _aligned(*self.paths)
        return _rows(self.paths[0], self.columns)

    def read(self) -> tuple[Dataset, Counter[str]]:
        """The usable pairs, and the number of skipped pairs by reason."""
        skipped = self.skipped()
        return self._mapped(), skipped

    def usable(self) -> Iterator[Pair]:
        for source, target in self.pairs():
            if not fault(source, target, self.longest):
                yield {"source": source.strip(), "target": target.strip()}

    def skipped(self) -> Counter[str]:
        """Number of skipped pairs by reason. Errors are raised here, before anything is written."""
        counts = Counter(fault(source, target, self.longest) for source, target in self.pairs())
        if not counts.pop("", 0):
            raise CorpusError(
                f"{self.paths[0]} has no usable pair of sentences; left out: {dict(counts) or 'nothing'}."
            )
        return counts

    def _mapped(self) -> Dataset:
        """The usable pairs as a memory-mapped data set, rebuilt when a file changes."""
        from datasets import Dataset

        # As text: datasets would treat a list as shards.
        key = " ".join([str(_READER), *(f"{path.resolve()} {_content_hash(path)}" for path in self.paths)])
        with _explained_cache():
            dataset: Dataset = Dataset.from_generator(_generate, gen_kwargs={"files": self, "key": key})
        return dataset


@contextlib.contextmanager
def _explained_cache() -> Iterator[None]:
    """A cache of `datasets` that cannot be written is an error that names it, and what to do."""
    from datasets import config
    from datasets.exceptions import DatasetGenerationError

    try:
        yield
    except (OSError, DatasetGenerationError) as error:
        cause = error.__cause__ if isinstance(error, DatasetGenerationError) else error
        if not isinstance(cause, OSError):
            raise
        raise FolderError(
            f"Pairs of sentences could not be written to {config.HF_DATASETS_CACHE}, the cache of datasets: "
            f"{cause.strerror or cause}. Make room there or raise the limit of file sizes (ulimit -f), or set "
            "HF_DATASETS_CACHE to another folder, and run the same command again."
        ) from error


def _generate(files: PairFiles, key: str) -> Iterator[Pair]:  # noqa: ARG001
    """Yield the usable pairs. `key` tells the cache of `datasets` whether the files have changed."""
    yield from files.usable()


def _content_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fault(source: str, target: str, longest: int) -> str:
    """Reason why a pair is skipped; empty for a usable pair."""
    if not source.strip() or not target.strip():
        return "empty"
    return "too long" if max(len(source.split()), len(target.split())) > longest else ""


def pair_cells(row: Any, columns: tuple[str, str], location: str) -> tuple[str, str]:
    """The pair in a row, also if it is nested under `translation`, as on the hub."""
    if isinstance(row.get("translation"), Mapping):
        row = row["translation"]
    if not all(name in row for name in columns):
        raise CorpusError(
            f"{location} has no columns {columns[0]!r} and {columns[1]!r}; it has {sorted(row)}. "
            "Name the two columns with columns=."
        )
    return text_cell(row, columns[0], location), text_cell(row, columns[1], location)


def _aligned(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    if not target.is_file():
        raise CorpusError(f"{source} has no counterpart {target}: every split needs a file in both languages.")
    lines = zip_longest(read_lines(source), read_lines(target))
    for number, (source_line, target_line) in enumerate(lines):
        if source_line is None or target_line is None:
            ended = source if source_line is None else target
            total = number + 1 + sum(1 for _ in lines)
            raise CorpusError(f"{ended} ends after {number} lines, its counterpart has {total}: lines must be aligned.")
        yield source_line, target_line


def _rows(path: Path, columns: tuple[str, str]) -> Iterator[tuple[str, str]]:
    header = _header(path, columns) if path.suffix == ".tsv" else None
    for location, row in read_rows(path, header=header):
        yield pair_cells(row, columns, location) if row else ("", "")


def _header(path: Path, columns: tuple[str, str]) -> tuple[str, str] | None:
    """Column names for a table of two columns without a header, source first; None if it has a header."""
    cells = next(read_lines(path), "").split("\t")
    if len(cells) != 2 or set(columns) == set(cells):
        return None
    names = [cell.strip().lower() for cell in cells]
    if set(names) & {column.lower() for column in columns} or all(map(_names_column, names)):
        raise CorpusError(
            f"{path}:1 looks like names of columns, {cells[0]!r} and {cells[1]!r}, but {columns[0]!r} and "
            f"{columns[1]!r} are expected. If these are names, give them with columns=, source first; if they are "
            f"sentences, put a first line with {columns[0]!r}, a tab and {columns[1]!r} above it."
        )
    return columns


def _names_column(cell: str) -> bool:
    return cell in _COLUMN_NAMES or _LANGUAGE_CODE.fullmatch(cell) is not None
