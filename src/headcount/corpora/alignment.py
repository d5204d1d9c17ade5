"""Alignment of words and pieces: which tokens of a tokenizer stand for which words of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Span = tuple[int, int]  # characters [start, end)


class Pieces(NamedTuple):
    """A text as the tokenizer gives it to a model: ids, and the characters each stands for; None for specials."""

    ids: list[int]
    spans: list[Span | None]


def pieces(tokenizer: PreTrainedTokenizerBase, text: str) -> Pieces:
    """What `tokenizer(text)` gives, with the place of every token in the text.

    Fast tokenizers say it themselves; for others (SentencePiece models) the pieces are sought in the text in order.
    """
    unknown = getattr(tokenizer, "unk_token_id", None)  # stands for a word: no special, whatever the tokenizer says
    if getattr(tokenizer, "is_fast", False):
        encoded = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        rows = zip(encoded["input_ids"], encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True)
        spans = [
            None if mark and token != unknown else _trimmed(text, (start, end)) for token, (start, end), mark in rows
        ]
        return Pieces(list(encoded["input_ids"]), spans)
    spelled = tokenizer.tokenize(text)
    ids = tokenizer.build_inputs_with_special_tokens(tokenizer.convert_tokens_to_ids(spelled))
    special = tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
    marks = [bool(mark) and token != unknown for token, mark in zip(ids, special, strict=True)]
    rest = iter(_sought(spelled, text))
    return Pieces(ids, [None if mark else next(rest) for mark in marks])


def piece_spans(tokenizer: PreTrainedTokenizerBase, text: str) -> list[Span | None]:
    """The characters each token of `tokenizer(text)` stands for; None for special tokens."""
    return pieces(tokenizer, text).spans


def pieces_of_words(words: Sequence[Span], pieces: Sequence[Span | None]) -> list[list[int]]:
    """For each word the places of its tokens: a token is of the word it shares most characters with.

    Both come in the order of the text. A word whose every token belongs rather to another word (parts of a
    contraction) gets those it touches.
    """
    pieces_within: list[list[int]] = [[] for _ in words]
    touched: list[list[int]] = [[] for _ in words]
    earliest = 0  # no word before this one reaches the pieces to come
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
    """For each word the number of the unit it belongs to: words that share a token cannot be told apart by attention.

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
    """Without the spaces that many tokenizers count to the word after them."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _sought(spelled: Sequence[str], text: str) -> list[Span | None]:
    """Each piece where it next occurs in the text, without the marks tokenizers put on it; empty where it does not."""
    spans: list[Span | None] = []
    cursor, lowered = 0, text.lower()
    for piece in spelled:
        bare = piece.removeprefix("##").removesuffix("</w>").removesuffix("@@").strip("\u2581\u0120 ")
        start = lowered.find(bare.lower(), cursor) if bare else -1
        if start < 0:
            spans.append((cursor, cursor))
            continue
        cursor = start + len(bare)
        spans.append((start, cursor))
    return spans
