"""CoNLL-U: treebanks in the format of Universal Dependencies. Knows the format, not what the trees are used for.

Ten columns per word, an empty line after each sentence. Multiword tokens (`3-4 don't`) give the text and stand for the
words after them; empty nodes (`8.1`) belong to another layer of annotation and are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from headcount.corpora.lines import read_lines
from headcount.corpora.tree import Tree
from headcount.errors import CorpusError

_COLUMNS = 10


@dataclass(frozen=True)
class Treebank:
    """The sentences of a treebank, and how many were left out for which reason."""

    trees: tuple[Tree, ...]
    skipped: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees)


def read_conllu(path: str | Path, *, on_error: Literal["raise", "skip"] = "raise") -> Treebank:
    """Read a treebank; a malformed sentence is an error with its line, or counted and left out."""
    file = Path(path)
    if not file.is_file():
        raise CorpusError(f"There is no treebank {file}. Give a file in CoNLL-U format (*.conllu).")
    trees, skipped = [], Counter[str]()
    for start, lines in _sentences(file):
        try:
            trees.append(_tree(lines, start, file))
        except CorpusError as error:
            if on_error == "raise":
                raise
            skipped[error.reason] += 1
    if not trees:
        left_out = f" ({sum(skipped.values())} sentences left out: {dict(skipped)})" if skipped else ""
        raise CorpusError(f"{file} has no sentence in CoNLL-U format{left_out}.")
    return Treebank(tuple(trees), skipped)


def _sentences(file: Path) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines) of each sentence."""
    lines: list[str] = []
    start = 1
    for number, line in enumerate(read_lines(file), start=1):
        if line.strip():
            if not lines:
                start = number
            lines.append(line)
        elif lines:
            yield start, lines
            lines = []
    if lines:
        yield start, lines


@dataclass
class _Word:
    """One line of a word, as read."""

    form: str
    tag: str
    head: int
    relation: str
    space_after: bool
    line: int


def _tree(lines: list[str], start: int, file: Path) -> Tree:
    words: list[_Word] = []
    joined: dict[int, tuple[int, str, bool]] = {}  # first word of a multiword token -> its last word, form, space after
    for number, line in enumerate(lines, start=start):
        if line.startswith("#"):
            continue
        where = f"{file}:{number}"
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise CorpusError(f"{where} has {len(columns)} columns, a word has {_COLUMNS}.", reason="wrong columns")
        name, misc = columns[0], columns[9]
        space_after = "SpaceAfter=No" not in misc.split("|")
        if "." in name:
            continue
        if "-" in name:
            first, last = (_number(part, where, "word range") for part in name.split("-", 1))
            joined[first - 1] = (last - 1, columns[1], space_after)
            continue
        if _number(name, where, "word number") != len(words) + 1:
            raise CorpusError(f"{where} is word {name}, expected {len(words) + 1}.", reason="words out of order")
        head = _number(columns[6], where, "head")
        relation = columns[7].split(":", 1)[0]
        words.append(_Word(columns[1], columns[3], head - 1, relation, space_after, number))
    _check(words, joined, f"{file}:{start}", file)
    text, spans = _text(words, joined)
    return Tree(
        text=text,
        words=tuple(word.form for word in words),
        spans=spans,
        heads=tuple(word.head for word in words),
        relations=tuple(word.relation for word in words),
        tags=tuple(word.tag for word in words),
    )


def _number(text: str, where: str, what: str) -> int:
    if not text.isdecimal():
        raise CorpusError(f"{where} has the {what} {text!r}, expected a number.", reason=f"bad {what}")
    return int(text)


def _check(words: list[_Word], joined: dict[int, tuple[int, str, bool]], where: str, file: Path) -> None:
    if not words:
        raise CorpusError(f"{where} is a sentence without words.", reason="no words")
    for first, (last, _, _) in joined.items():
        if not 0 <= first < last < len(words):
            raise CorpusError(
                f"{where} joins words {first + 1} to {last + 1} of {len(words)}.", reason="bad word range"
            )
    for word in words:
        if word.head >= len(words):
            raise CorpusError(
                f"{file}:{word.line} depends on word {word.head + 1} of {len(words)}.", reason="head out of range"
            )
    for place in range(len(words)):
        steps, now = 0, place
        while now >= 0:
            now, steps = words[now].head, steps + 1
            if steps > len(words):
                raise CorpusError(f"{file}:{words[place].line} depends on itself in a circle.", reason="circle")


def _text(words: list[_Word], joined: dict[int, tuple[int, str, bool]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text and where each word stands in it. Words of a contraction share its span unless they spell it."""
    text, spans, place = "", [], 0
    while place < len(words):
        last, form, space_after = joined.get(place, (place, words[place].form, words[place].space_after))
        parts = words[place : last + 1]
        spans += _spans(form, [part.form for part in parts], len(text))
        text += form + (" " if space_after else "")
        place = last + 1
    return text.rstrip(" "), tuple(spans)


def _spans(form: str, parts: Iterable[str], start: int) -> list[tuple[int, int]]:
    parts = list(parts)
    if "".join(parts) != form:
        return [(start, start + len(form))] * len(parts)
    spans = []
    for part in parts:
        spans.append((start, start + len(part)))
        start += len(part)
    return spans
