"""Labelled text: texts or pairs of texts, each with a class. Knows files, not tokenizers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.corpora.classes import Classes
from headcount.corpora.location import Location
from headcount.corpora.splits import read_hub, split_files, split_of
from headcount.corpora.tables import SUFFIXES, TEXT_COLUMNS, Row, find_column, label_cell, read_rows, text_cell
from headcount.errors import CorpusError

_LABEL = ("label", "labels", "class")
_TEXTS = frozenset((  # usual names of texts, of which a model of pairs reads two
    *TEXT_COLUMNS, "text1", "text2", "text_1", "text_2", "text_a", "text_b", "text_pair", "sentence2", "sentence_1",
    "sentence_2", "sentence_a", "sentence_b", "hypothesis", "question", "question1", "question2", "query", "claim",
    "evidence", "context", "passage", "document", "aspect",
))  # fmt: skip


@dataclass(frozen=True)
class Labelled:
    """Texts with class numbers, and the number of skipped rows by reason."""

    texts: list[str]
    labels: list[int]
    classes: tuple[str, ...]  # names by class number
    pairs: list[str] | None
    skipped: Counter[str]


def read_labelled(
    data: str | Path,
    *,
    split: str | None = None,
    text: str | None = None,
    label: str | None = None,
    pair: str | None = None,
    classes: Sequence[str] | None = None,
    limit: int | None = None,
) -> Labelled:
    """Read labelled texts: a .tsv (with a header) or .jsonl file, a folder with one per split, or hf:name[:config].

    split: split of a folder or hub data set.
    text, label, pair: column names; text and label default to the usual names of such columns.
    classes: class names by number, if the model has them. By default names are numbered alphabetically.
    limit: read at most this many usable rows.
    """
    if pair is not None and pair == text:
        raise CorpusError(f"Both texts of a pair would be the column {pair!r}: name two different columns.")
    texts: list[str] = []
    pairs: list[str] = []
    labels = Classes(classes)
    skipped: Counter[str] = Counter()
    for location, row in _rows(data, split, label, classes):
        if limit is not None and len(texts) == limit:
            break
        if not row:
            skipped["empty"] += 1
            continue
        text = text or _text_column(row, location, pair)
        label = label or find_column(row, _LABEL, location, option="label= (--label)")
        cells = [text_cell(row, column, location) for column in (text, *([pair] if pair else []))]
        name = label_cell(row, label, location)
        if not all(str(cell).strip() for cell in (name, *cells)):
            skipped["empty"] += 1
            continue
        labels.add(name, location)
        texts.append(cells[0])
        pairs += cells[1:]
    if not texts:
        raise CorpusError(f"{data} has no labelled text; left out: {dict(skipped) or 'nothing'}.")
    numbers, names = labels.numbered()
    return Labelled(texts, numbers, names, pairs if pair else None, skipped)


def _text_column(row: Row, location: str, pair: str | None) -> str:
    """The column with the text, or with the first text if `pair` is the column of the second.

    Raises if there are texts in another column and none is named: a model of pairs would read half of its input.
    """
    columns = [column for column in row if column != pair]
    text = find_column(columns, TEXT_COLUMNS, location, option="text= (--text-column)")
    further_texts = [column for column in columns if column in _TEXTS and column != text]
    if further_texts and pair is None:
        raise CorpusError(
            f"{location} has the columns {text} and {', '.join(further_texts)}. If the model reads two texts, name the "
            "first with text= (--text-column) and the second with pair= (--pair); else name the one that it reads."
        )
    return text


def _rows(
    data: str | Path, split: str | None, label: str | None, classes: Sequence[str] | None
) -> Iterator[tuple[str, Row]]:
    location = Location.of(data)
    if location.kind == "hub":
        return _hub_rows(location, split, label, classes)
    if location.kind != "folder":
        return read_rows(location.path)
    return read_rows(split_of(split_files(location.path, SUFFIXES), split, location.data))


def _hub_rows(
    location: Location, split: str | None, label: str | None, classes: Sequence[str] | None
) -> Iterator[tuple[str, Row]]:
    """Rows of a data set of the hub, with labels by name if both the data set and the model name their classes.

    They may count them differently: entailment is class 0 of MNLI, and class 2 of many of its models.
    """
    name = location.hub_name
    rows = split_of(read_hub(name), split, location.data)
    columns: dict[str, Any] = dict(getattr(rows, "features", None) or {})
    column = label or next((usual for usual in _LABEL if usual in columns), "")
    names = getattr(columns.get(column), "names", None)
    spelled = _spelled(names, classes, location.data) if names and classes else None
    for number, row in enumerate(rows):
        if spelled and isinstance(row[column], int) and 0 <= row[column] < len(spelled):
            row = {**row, column: spelled[row[column]]}
        yield f"{name}, row {number}", row


def _spelled(names: Sequence[str], classes: Sequence[str], data: str) -> list[str] | None:
    """The classes of a model for the class numbers of a data set, by name without regard to case; None if names differ.

    Numbers are then taken as they are, with a warning.
    """
    by_folded_name = {name.casefold(): name for name in classes}
    if len(by_folded_name) == len(classes) and all(name.casefold() in by_folded_name for name in names):
        return [by_folded_name[name.casefold()] for name in names]
    if all(name.isdecimal() for name in classes):  # numbers as names, which say nothing of their order
        return None
    warnings.warn(
        f"The classes of {data} are {', '.join(names[:5])}, those of the model {', '.join(classes[:5])}: labels are "
        "taken by number. If the model counts its classes in another order, all results are wrong.",
        stacklevel=2,
    )
    return None
