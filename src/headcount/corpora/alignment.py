"""Alignment of words and subword tokens: which tokens of a tokenizer belong to which words of a sentence."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from headcount.corpora.special_tokens import special_tokens, unknown_word

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Span = tuple[int, int]  # characters [start, end)


class Pieces(NamedTuple):
    """The tokens of a text: ids, and the character span of each; None for special tokens."""

    ids: list[int]
    spans: list[Span | None]


def pieces(tokenizer: PreTrainedTokenizerBase, text: str) -> Pieces:
    """The tokens of `tokenizer(text)` with the character span of each.

    Fast tokenizers return the spans; for others (SentencePiece models) the pieces are searched in the text in order,
    unless they are its bytes, as those of ByT5.
    """
    if getattr(tokenizer, "is_fast", False):
        unknown = unknown_word(tokenizer)  # some tokenizers mark it as special
        encoded = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        rows = zip(encoded["input_ids"], encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True)
        spans = [
            None if mark and token != unknown else _trimmed(text, (start, end)) for token, (start, end), mark in rows
        ]
        return Pieces(list(encoded["input_ids"]), spans)
    spelled = tokenizer.tokenize(text)
    inner = tokenizer.convert_tokens_to_ids(spelled)
    ids = tokenizer.build_inputs_with_special_tokens(inner)
    before = next(start for start in range(len(ids) + 1) if ids[start : start + len(inner)] == inner)
    special = special_tokens(tokenizer)
    places = _of_bytes(text) if spelled == _bytes(text) else _sought(spelled, text)
    spans = [None if token in special else span for token, span in zip(inner, places, strict=True)]
    # The language that M2M-100 writes before a text is not among its special tokens.
    return Pieces(ids, [None] * before + spans + [None] * (len(ids) - before - len(inner)))


def piece_spans(tokenizer: PreTrainedTokenizerBase, text: str) -> list[Span | None]:
    """The character span of each token of `tokenizer(text)`; None for special tokens."""
    return pieces(tokenizer, text).spans


def pieces_of_words(words: Sequence[Span], pieces: Sequence[Span | None]) -> list[list[int]]:
    """Indices of the tokens of each word. A token belongs to the word with which it shares most characters.

    Words and tokens are in the order of the text. A word all of whose tokens belong to other words (part of a
    contraction) gets the tokens that it overlaps.
    """
    pieces_within: list[list[int]] = [[] for _ in words]
    touched: list[list[int]] = [[] for _ in words]
    earliest = 0  # words before this one end before the next token
    for index, piece in enumerate(pieces):
        if piece is None:
            continue
        start, end = piece
        while earliest < len(words) and words[earliest][1] <= start:
            earliest += 1
        best, most = -1, 0
        for word in range(earliest, len(words)):
            if words[word][0] >= end:
                break
            characters = min(end, words[word][1]) - max(start, words[word][0])
            if characters > 0:
                touched[word].append(index)
                if characters > most:
                    best, most = word, characters
        if best >= 0:
            pieces_within[best].append(index)
    return [within or other for within, other in zip(pieces_within, touched, strict=True)]


def units(words: Sequence[Sequence[int]]) -> list[int]:
    """The unit of each word. Words that share a token are one unit: attention cannot distinguish them.

    Units are numbered in the order of their first words.
    """
    if sum(map(len, words)) == len(set().union(*words)):
        return list(range(len(words)))
    unit_of: list[int] = []
    owner: dict[int, int] = {}  # token -> unit
    for places in words:
        shared = sorted({owner[index] for index in places if index in owner})
        unit = shared[0] if shared else 1 + max(unit_of, default=-1)
        for other in shared[1:]:
            unit_of = [unit if number == other else number for number in unit_of]
            owner = {index: unit if number == other else number for index, number in owner.items()}
        owner |= dict.fromkeys(places, unit)
        unit_of.append(unit)
    order = {unit: number for number, unit in enumerate(dict.fromkeys(unit_of))}
    return [order[unit] for unit in unit_of]


def _trimmed(text: str, span: Span) -> Span:
    """The span without leading spaces, which many tokenizers add to the next word."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _bytes(text: str) -> list[str]:
    """The pieces of a text for a tokenizer of bytes."""
    return [chr(byte) for byte in text.encode(errors="replace")]


def _of_bytes(text: str) -> list[Span | None]:
    """The span of each byte: the character that it is a part of."""
    return [
        _trimmed(text, (index, index + 1))
        for index, character in enumerate(text)
        for _ in character.encode(errors="replace")
    ]


def _sought(spelled: Sequence[str], text: str) -> list[Span | None]:
    """The span of each piece, without the marks of the tokenizer, at its next occurrence; empty if there is none near.

    SentencePiece models rewrite characters (one half becomes three, a capital a small letter): both sides are folded.
    A piece is sought in the rest of its word, the next word, and as many more as pieces before it were not found.
    """
    letters = [(letter, index) for index, character in enumerate(text) for letter in _folded(character)]
    folded, places = "".join(letter for letter, _ in letters), [*(index for _, index in letters), len(text)]
    word_ends = [word.end() for word in re.finditer(r"\S+", folded)]
    spans: list[Span | None] = []
    cursor = missed = 0
    for piece in spelled:
        bare = _folded(piece.removeprefix("##").removesuffix("</w>").removesuffix("@@").strip("\u2581\u0120 "))
        near = word_ends[bisect_right(word_ends, cursor) :][: 2 + missed]
        start = folded.find(bare, cursor, near[-1]) if bare and near else -1
        if start < 0:
            missed += bool(bare)
            spans.append((places[cursor], places[cursor]))
            continue
        cursor, missed = start + len(bare), 0
        spans.append((places[start], places[cursor - 1] + 1))
    return spans


def _folded(text: str) -> str:
    """Text in compatible characters without case; that of a text is that of its characters one by one."""
    return unicodedata.normalize("NFKD", text).casefold()
