"""Encoding: sentences as inputs of a model, with the properties of tokens and words that roles need.

Shapes: B batch, T tokens, U units (words that attention can distinguish), N instances of relations.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.corpora.alignment import Span, pieces, pieces_of_words, units
from headcount.corpora.target_language import target_ids
from headcount.corpora.tree import Tree
from headcount.errors import CorpusError
from headcount.hooks import config_of

WINDOW = 512  # sentences sorted by length together: little padding, and memory does not grow with the corpus


@dataclass(frozen=True)
class Sentence:
    """One sentence, encoded."""

    number: int  # in the corpus
    ids: Sequence[int]
    special: Sequence[bool]
    punctuation: Sequence[bool]
    words: Sequence[Sequence[int]]  # tokens of each unit; none without a tree
    arcs: Sequence[tuple[int, int, str]]  # (dependent, head, relation) by unit
    target: Sequence[int]  # ids of the translation, with the end token; empty if there is none


class Encoder:
    """Encodes trees and texts as sentences, and counts those it skips."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, longest: int, relations: Sequence[str]) -> None:
        self._tokenizer, self._longest, self._relations = tokenizer, longest, relations
        self.skipped: Counter[str] = Counter()
        self.relation_counts: Counter[str] = Counter()  # instances of all relations, requested or not
        self.trees = 0

    def sentence(self, number: int, item: Tree | str, target: str | None) -> Sentence | None:
        text = item.text if isinstance(item, Tree) else item
        if not isinstance(text, str):
            raise CorpusError(f"Sentence {number} is {type(item).__name__}, expected a Tree or text.")
        encoded = pieces(self._tokenizer, text) if text.strip() else None
        if encoded is None or all(span is None for span in encoded.spans):
            self.skipped["empty"] += 1
            return None
        translation_ids = list(target_ids(self._tokenizer, target)) if target is not None else []
        if max(len(encoded.ids), len(translation_ids)) > self._longest:
            self.skipped[f"more than the model's {self._longest} tokens"] += 1
            return None
        words, arcs = self._syntax(item, encoded.spans) if isinstance(item, Tree) else ([], [])
        return Sentence(
            number,
            encoded.ids,
            [span is None for span in encoded.spans],
            [span is not None and _is_punctuation(text[span[0] : span[1]]) for span in encoded.spans],
            words,
            arcs,
            translation_ids,
        )

    def _syntax(self, tree: Tree, spans: Sequence[Span | None]) -> tuple[list[list[int]], list[tuple[int, int, str]]]:
        tokens = pieces_of_words(tree.spans, spans)
        if not all(tokens):
            self.skipped["words without tokens of their own (syntactic only)"] += 1
            return [], []
        self.trees += 1
        unit_of = units(tokens)
        words: list[list[int]] = [[] for _ in range(1 + max(unit_of))]
        for unit, places in zip(unit_of, tokens, strict=True):
            words[unit] += [index for index in places if index not in words[unit]]
        self.relation_counts.update(arc.relation for arc in tree.arcs())
        arcs = [(unit_of[arc.dependent], unit_of[arc.head], arc.relation) for arc in tree.arcs(*self._relations)]
        within = sum(dependent == head for dependent, head, _ in arcs)
        if within:
            self.skipped["relations within one token (syntactic only)"] += within
        return words, [arc for arc in arcs if arc[0] != arc[1]]


@lru_cache(maxsize=100_000)
def _is_punctuation(piece: str) -> bool:
    return bool(piece) and all(unicodedata.category(sign).startswith("P") for sign in piece)


def windows(
    encoder: Encoder, corpus: Iterable[Tree | str], targets: Iterable[str] | None
) -> Iterator[tuple[int, list[Sentence]]]:
    """(number of sentences read, encoded sentences) for each window of the corpus."""
    waiting: list[Sentence] = []
    read, other = 0, _translations(targets) if targets is not None else None
    for item in corpus:
        target = next(other, None) if other is not None else None
        if other is not None and target is None:
            raise CorpusError(
                f"There are only {read} translations, but more sentences; give one translation per sentence."
            )
        sentence = encoder.sentence(read, item, target)
        waiting += [sentence] if sentence is not None else []
        read += 1
        if len(waiting) == WINDOW:
            yield read, waiting
            waiting = []
    if other is not None and next(other, None) is not None:
        raise CorpusError(f"There are more translations than the {read} sentences; give one translation per sentence.")
    if waiting:
        yield read, waiting


def _translations(targets: Iterable[str]) -> Iterator[str]:
    for number, target in enumerate(targets):
        if not isinstance(target, str):
            raise CorpusError(f"Translation {number} is {type(target).__name__}, expected text.")
        yield target


def batches(sentences: Sequence[Sentence], tokens: int) -> Iterator[Batch]:
    """Batches of sentences of similar length, at most this many tokens each, padding included."""
    order = sorted(sentences, key=lambda sentence: (len(sentence.ids), len(sentence.target)))
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * len(order[stop].ids) <= tokens:
            stop += 1
        yield Batch(order[start:stop])
        start = stop


class Batch:
    """Encoded sentences, padded at the end."""

    def __init__(self, rows: Sequence[Sentence]) -> None:
        self.rows = rows
        self.numbers = np.array([row.number for row in rows])

    @cached_property
    def ids_BT(self) -> Tensor:
        return _padded([row.ids for row in self.rows], 0)

    @cached_property
    def real_BT(self) -> Tensor:
        return _padded([[1] * len(row.ids) for row in self.rows], 0).bool()

    @cached_property
    def special_BT(self) -> Tensor:
        return _padded([row.special for row in self.rows], 0).bool()

    @cached_property
    def punctuation_BT(self) -> Tensor:
        return _padded([row.punctuation for row in self.rows], 0).bool()

    @property
    def has_targets(self) -> bool:
        return any(row.target for row in self.rows)

    @cached_property
    def labels_BT(self) -> Tensor:
        """Target ids of a decoder; -100 at padding."""
        return _padded([row.target for row in self.rows], -100)

    @property
    def has_words(self) -> bool:
        return any(row.arcs for row in self.rows)

    @cached_property
    def words_BUT(self) -> Tensor:
        """1 if a token belongs to a unit."""
        most = max(len(row.words) for row in self.rows)
        table = np.zeros((len(self.rows), max(1, most), self.ids_BT.shape[1]), dtype=np.float32)
        belongs = [
            (number, unit, index)
            for number, row in enumerate(self.rows)
            for unit, places in enumerate(row.words)
            for index in places
        ]
        table[tuple(np.array(belongs, dtype=np.int64).reshape(-1, 3).T)] = 1.0
        return torch.from_numpy(table)

    @cached_property
    def unit_BT(self) -> Tensor:
        """The unit of each token; the number of units for tokens without a unit. No token belongs to two units."""
        units = self.words_BUT.shape[1]
        return torch.where(self.words_BUT.any(1), self.words_BUT.argmax(1), units)

    def rarest(self, table: np.ndarray, common: int) -> tuple[Tensor, Tensor]:
        """[B, T] each: whether a token is the rarest, or one of the two rarest, in sentences with a rare token.

        table: count and rank of every token. Tokens of equal count are equally rare.
        """
        ids_BT, tokens_BT = self.ids_BT.numpy(), (self.real_BT & ~self.special_BT).numpy()
        counts_BT = np.where(tokens_BT, table[0][ids_BT], np.inf)
        rarest_B1 = np.take_along_axis(ids_BT, counts_BT.argmin(-1)[:, None], -1)
        first_B1 = counts_BT.min(-1, keepdims=True)
        others_BT = np.where(ids_BT == rarest_B1, np.inf, counts_BT)
        second_B1 = others_BT.min(-1, keepdims=True)
        second_B1 = np.where(np.isinf(second_B1), first_B1, second_B1)  # a sentence of one type of token
        rare_B1 = table[1][rarest_B1] > common
        return tuple(torch.from_numpy(tokens_BT & rare_B1 & (counts_BT <= most)) for most in (first_B1, second_B1))  # type: ignore[return-value]


def _padded(rows: Sequence[Sequence[int]], padding: int) -> Tensor:
    table = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return torch.from_numpy(table)


def id_count(model: nn.Module, tokenizer: PreTrainedTokenizerBase) -> int:
    """Number of token ids that a text may have: some are not in the length of the tokenizer, as where ids have gaps."""
    return max(len(tokenizer), getattr(config_of(model), "vocab_size", None) or 0)
