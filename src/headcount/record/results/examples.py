"""The result of `headcount study examples`: attention of every head on a few sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import Result


@dataclass(frozen=True)
class Dependencies:
    """The tree of a sentence."""

    side: str  # side whose tokens form the words
    words: tuple[tuple[int, ...], ...]  # indices of each word's tokens
    parents: tuple[int, ...]  # the word that each word depends on, or -1
    relations: tuple[str, ...]


@dataclass(frozen=True)
class Example:
    """One sentence.

    Sides: source; of an encoder-decoder also read (what the decoder has read at each step) and written (what it
    writes there).
    """

    tokens: Mapping[str, tuple[str, ...]]  # side -> tokens as text
    sides: Mapping[str, tuple[str, ...]]  # kind -> side of the queries, side of the keys
    tree: Dependencies | None
    attention: Mapping[str, tuple[str, ...]]  # head -> one text per query: its weights, separated by spaces


@dataclass(frozen=True)
class Examples(Result):
    """Sentences with the attention of every head."""

    examples: tuple[Example, ...]
    too_long: int  # sentences skipped because they, or their targets, have more tokens than are shown
    too_short: int = 0  # sentences skipped because they have one token; counted as too long in older records


RESULT = Examples
