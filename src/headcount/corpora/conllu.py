"""CoNLL-U: treebanks in the format of Universal Dependencies. Knows the format, not what the trees are used for.

Ten columns per word, an empty line after each sentence. Multiword tokens (`3-4 don't`) have the text of the words after
them; empty nodes (`8.1`) belong to another layer of annotation and are skipped. A sentence is one tree:
one word depends on no other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from headcount.corpora.lines import read_lines
from headcount.corpora.tree import Tree, person_of
from headcount.errors import CorpusError

_COLUMNS = 10
_EMPTY_NODE = re.compile(r"[0-9]+\.[0-9]+")
_MAX_DIGITS = 9  # of the number of a word


@dataclass(frozen=True)
class Treebank:
    """The sentences of a treebank, and the number of skipped sentences by reason."""

    trees: tuple[Tree, ...]
    skipped: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees)


def read_conllu(path: str | Path, *, on_error: Literal["raise", "skip"] = "raise") -> Treebank:
    """Read a treebank. A malformed sentence raises an error with its line, or is skipped and counted."""
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
    person: str = ""


def _tree(lines: list[str], start: int, file: Path) -> Tree:
    words: list[_Word] = []
    joined: dict[int, tuple[int, str, bool]] = {}  # first word of a multiword token -> its last word, form, space after
    last_joined = -1
    for number, line in enumerate(lines, start=start):
        if line.startswith("#"):
            continue
        location = f"{file}:{number}"
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise CorpusError(
                f"{location} has {len(columns)} columns; a CoNLL-U word line has {_COLUMNS}.", reason="wrong columns"
            )
        name, form, misc = columns[0], columns[1], columns[9]
        if _EMPTY_NODE.fullmatch(name):
            continue
        if not form.strip():
            raise CorpusError(f"{location} is word {name} without a form (column 2).", reason="empty word")
        space_after = "SpaceAfter=No" not in misc.split("|")
        if "-" in name:
            start_word, last = (_number(part, location, "word range") - 1 for part in name.split("-", 1))
            if start_word != len(words) or start_word <= last_joined:
                raise CorpusError(
                    f"{location} is the word range {name} after word {len(words)}.", reason="bad word range"
                )
            joined[start_word], last_joined = (last, form, space_after), last
            continue
        if _number(name, location, "word number") != len(words) + 1:
            raise CorpusError(f"{location} is word {name}, expected {len(words) + 1}.", reason="words out of order")
        head = _number(columns[6], location, "head")
        relation = columns[7].split(":", 1)[0]
        words.append(_Word(form, columns[3], head - 1, relation, space_after, number, person_of(columns[5])))
    _check(words, joined, f"{file}:{start}", file)
    text, spans = _text(words, joined)
    return Tree(
        text=text, words=tuple(word.form for word in words), spans=spans, heads=tuple(word.head for word in words),
        relations=tuple(word.relation for word in words), tags=tuple(word.tag for word in words),
        persons=tuple(word.person for word in words),
    )  # fmt: skip


def _number(text: str, location: str, what: str) -> int:
    if not text.isdecimal() or len(text) > _MAX_DIGITS:
        raise CorpusError(f"{location} has the {what} {text!r:.40}, expected a number.", reason=f"bad {what}")
    return int(text)


def _check(words: list[_Word], joined: dict[int, tuple[int, str, bool]], location: str, file: Path) -> None:
    if not words:
        raise CorpusError(f"{location} is a sentence without words.", reason="no words")
    for start, (last, _, _) in joined.items():
        if not start < last < len(words):
            raise CorpusError(
                f"{location} is the word range {start + 1}-{last + 1} in a sentence of {len(words)} words.",
                reason="bad word range",
            )
    for word in words:
        if word.head >= len(words):
            raise CorpusError(
                f"{file}:{word.line} depends on word {word.head + 1}, but the sentence has {len(words)}.",
                reason="head out of range",
            )
    _check_tree(words, file)


def _check_tree(words: list[_Word], file: Path) -> None:
    """Check that there is one root from which every word is reached. Linear time: no word is visited twice."""
    reaches_root = [False] * len(words)
    for start in range(len(words)):
        path: dict[int, None] = {}  # in the order of the walk
        index = start
        while index >= 0 and not reaches_root[index]:
            if index in path:
                raise CorpusError(
                    f"{file}:{words[index].line} depends on itself through a cycle of heads.", reason="circle"
                )
            path[index] = None
            index = words[index].head
        for step in path:
            reaches_root[step] = True
    roots = [word for word in words if word.head < 0]
    if len(roots) > 1:
        raise CorpusError(
            f"{file}:{roots[1].line} is a second root, {roots[1].form!r:.40} besides {roots[0].form!r:.40}; "
            "a sentence has exactly one word with head 0.",
            reason="several roots",
        )


def _text(words: list[_Word], joined: dict[int, tuple[int, str, bool]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text and the character span of each word. Words of a contraction share its span unless they spell it."""
    forms: list[str] = []
    spans: list[tuple[int, int]] = []
    index = start = end = 0
    while index < len(words):
        last, form, space_after = joined.get(index, (index, words[index].form, words[index].space_after))
        parts = words[index : last + 1]
        spans += _spans(form, [part.form for part in parts], start)
        end = start + len(form)
        forms.append(form + (" " if space_after else ""))
        start += len(forms[-1])
        index = last + 1
    return "".join(forms)[:end], tuple(spans)


def _spans(form: str, parts: Iterable[str], start: int) -> list[tuple[int, int]]:
    parts = list(parts)
    if "".join(parts) != form:
        return [(start, start + len(form))] * len(parts)
    spans = []
    for part in parts:
        spans.append((start, start + len(part)))
        start += len(part)
    return spans
