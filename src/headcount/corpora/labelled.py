"""Labelled text: texts, or pairs of texts, with a class each. Knows files, not tokenizers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.corpora.tables import Row, read_rows
from headcount.errors import CorpusError

_TEXT = ("text", "sentence", "content", "sentence1", "premise")
_LABEL = ("label", "labels", "class")


@dataclass(frozen=True)
class Labelled:
    """Texts with their classes by number, and how many rows were left out for which reason."""

    texts: list[str]
    labels: list[int]
    classes: tuple[str, ...]  # what each number stands for
    pairs: list[str] | None
    skipped: Counter[str]


def read_labelled(
    path: str | Path,
    *,
    text: str | None = None,
    label: str | None = None,
    pair: str | None = None,
    limit: int | None = None,
) -> Labelled:
    """Read a .tsv (with a header) or .jsonl file of labelled texts.

    text, label, pair: the columns; text and label are looked for under their usual names if not given.
    limit: read so many usable rows at most.
    """
    texts: list[str] = []
    labels: list[Any] = []
    pairs: list[str] = []
    skipped: Counter[str] = Counter()
    for where, row in read_rows(Path(path)):
        if limit is not None and len(texts) == limit:
            break
        if not row:
            skipped["empty"] += 1
            continue
        text, label = text or _find(row, _TEXT, where, "text"), label or _find(row, _LABEL, where, "label")
        cells = [_cell(row, name, where) for name in (text, label, *([pair] if pair else []))]
        if not all(str(cell).strip() for cell in cells):
            skipped["empty"] += 1
            continue
        texts.append(str(cells[0]))
        labels.append(cells[1])
        pairs += [str(cell) for cell in cells[2:]]
    if not texts:
        raise CorpusError(f"{path} has no labelled text; left out: {dict(skipped) or 'nothing'}.")
    numbers, classes = _classes(labels)
    return Labelled(texts, numbers, classes, pairs if pair else None, skipped)


def _find(row: Row, names: Sequence[str], where: str, what: str) -> str:
    found = next((name for name in names if name in row), None)
    if found is None:
        raise CorpusError(f"{where} has the columns {', '.join(map(str, row))}; say which is the {what} with {what}=.")
    return found


def _cell(row: Row, name: str, where: str) -> Any:
    if name not in row:
        raise CorpusError(f"{where} has no column {name!r}; it has {', '.join(map(str, row))}.")
    return row[name]


def _classes(labels: list[Any]) -> tuple[list[int], tuple[str, ...]]:
    """Numbers stay what they are; names are numbered in alphabetical order."""
    named = [str(label).strip() for label in labels]
    if all(name.isdecimal() for name in named):
        numbers = [int(name) for name in named]
        return numbers, tuple(str(number) for number in range(max(numbers) + 1))
    classes = tuple(sorted(set(named)))
    return [classes.index(name) for name in named], classes
