"""Tree: one sentence with its dependency tree. Knows words, not tokenizers, and no file format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Arc(NamedTuple):
    """One dependency: both words by their index in the sentence, from 0."""

    dependent: int
    head: int
    relation: str


@dataclass(frozen=True)
class Tree:
    """A sentence: its text, its words with their character spans, and the head of each word."""

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]  # characters [start, end) of each word; parts of a contraction may share them
    heads: tuple[int, ...]  # index of the word that each depends on; -1 for the root
    relations: tuple[str, ...]  # without subtype: nsubj, not nsubj:pass
    tags: tuple[str, ...] = ()  # universal part of speech of each word, if known
    # Grammatical person of each word, empty if it has none. Not in the fingerprint of sentences: it changes no head.
    persons: tuple[str, ...] = field(default=(), repr=False)

    def arcs(self, *relations: str) -> Iterator[Arc]:
        """The dependencies of these relations, or all, without the root."""
        for dependent, (head, relation) in enumerate(zip(self.heads, self.relations, strict=True)):
            if head >= 0 and (not relations or relation in relations):
                yield Arc(dependent, head, relation)

    def __len__(self) -> int:
        return len(self.words)


def person_of(features: str) -> str:
    """The grammatical person in the features of a word (`Case=Nom|Person=1`); empty if they have none."""
    return next((pair.removeprefix("Person=") for pair in features.split("|") if pair.startswith("Person=")), "")
