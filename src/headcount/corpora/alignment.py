"""Alignment of words and pieces: which tokens of a tokenizer stand for which words of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Span = tuple[int, int]  # characters [start, end)


def piece_spans(tokenizer: Any, text: str) -> list[Span | None]:
    """The characters each token of `tokenizer(text)` stands for; None for special tokens.

    Fast tokenizers say it themselves; for others (SentencePiece models) the pieces are sought in the text in order.
    """
    if getattr(tokenizer, "is_fast", False):
        encoded = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        pairs = zip(encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True)
        return [None if special else _trimmed(text, (start, end)) for (start, end), special in pairs]
    ids = tokenizer(text)["input_ids"]
    special = tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
    rest = iter(_sought(tokenizer.tokenize(text), text))
    return [None if mark else next(rest) for mark in special]


def pieces_of_words(words: Sequence[Span], pieces: Sequence[Span | None]) -> list[list[int]]:
    """For each word the places of its tokens: a token is of the word it shares most characters with.

    A word whose every token belongs rather to another word (parts of a contraction) gets those it touches.
    """
    found: list[list[int]] = [[] for _ in words]
    touched: list[list[int]] = [[] for _ in words]
    for place, piece in enumerate(pieces):
        if piece is None:
            continue
        shared = [min(piece[1], end) - max(piece[0], start) for start, end in words]
        for word, characters in enumerate(shared):
            if characters > 0:
                touched[word].append(place)
        if shared and max(shared) > 0:
            found[shared.index(max(shared))].append(place)
    return [own or other for own, other in zip(found, touched, strict=True)]


def _trimmed(text: str, span: Span) -> Span:
    """Without the spaces that many tokenizers count to the word after them."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _sought(pieces: Sequence[str], text: str) -> list[Span | None]:
    """Each piece where it next occurs in the text, without the marks tokenizers put on it; empty where it does not."""
    found: list[Span | None] = []
    cursor, lowered = 0, text.lower()
    for piece in pieces:
        bare = piece.removeprefix("##").removesuffix("</w>").removesuffix("@@").strip("\u2581\u0120 ")
        start = lowered.find(bare.lower(), cursor) if bare else -1
        if start < 0:
            found.append((cursor, cursor))
            continue
        cursor = start + len(bare)
        found.append((start, cursor))
    return found
