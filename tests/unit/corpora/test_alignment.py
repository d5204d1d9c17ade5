"""Words and pieces: every piece at its place in the text, for each kind of tokenizer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import BertTokenizer, ByT5Tokenizer, PreTrainedTokenizerFast

import laboratory
import tokens
from headcount.corpora.alignment import _sought, piece_spans, pieces, pieces_of_words, units
from headcount.corpora.grammar.corpus import Grammar

TREES = [row.tree for row in Grammar("light", "written", train=300).splits()["dev"][:60]]


def byte_level(tmp_path: Path) -> Any:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    inner.train_from_iterator(
        [tree.text for tree in TREES], trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>"])
    )
    inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>")


def marian(tmp_path: Path) -> Any:
    return laboratory.vocabulary(tmp_path / "v", size=120)


def word_piece(tmp_path: Path) -> Any:
    letters = [chr(code) for code in range(97, 123)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", "!", ",", *letters, *(f"##{x}" for x in letters)]
    (tmp_path / "vocab.txt").write_text("\n".join([*pieces, "the", "dog"]))
    return BertTokenizer(str(tmp_path / "vocab.txt"))


def m2m_100(tmp_path: Path) -> Any:
    return tokens.m2m_100(tmp_path, [tree.text for tree in TREES])


def bytes_alone(tmp_path: Path) -> Any:
    return ByT5Tokenizer()


@pytest.mark.parametrize("make", [byte_level, marian, word_piece, m2m_100, bytes_alone])
def test_pieces_spell_their_words(make: Any, tmp_path: Path) -> None:
    tokenizer = make(tmp_path)
    for tree in TREES:
        spans = piece_spans(tokenizer, tree.text)
        assert len(spans) == len(tokenizer(tree.text)["input_ids"])
        assert None in spans
        words = pieces_of_words(tree.spans, spans)
        for (start, end), places in zip(tree.spans, words, strict=True):
            assert places
            touched = [spans[place] for place in places]
            assert min(first for first, _ in touched) <= start
            assert max(last for _, last in touched) >= end
        assert len({place for places in words for place in places}) == len(
            [span for span in spans if span and span[0] < span[1]]
        )


def test_a_piece_of_two_words_goes_to_the_larger_share() -> None:
    assert pieces_of_words([(0, 3), (3, 4)], [(0, 4), None]) == [[0], [0]]
    assert pieces_of_words([(0, 3), (4, 8)], [(0, 2), (2, 6), (6, 8)]) == [[0], [1, 2]]
    assert pieces_of_words([(0, 2), (2, 4)], [(0, 1), (1, 3), (3, 4)]) == [[0, 1], [2]]  # a tie: to the first


def test_slow_tokenizers_are_sought_in_the_text() -> None:
    assert _sought(["The", "##re", "\u2581is", "!"], "There is!") == [(0, 3), (3, 5), (6, 8), (8, 9)]
    assert _sought(["x"], "abc") == [(0, 0)]


@pytest.mark.parametrize(
    ("spelled", "text"),
    [
        ("_He _ate _1 \u2044 2 _of _it _and _left _1 _for _me", "He ate \u00bd of it and left 1 for me"),
        ("_Well _. .. _so _. _Fine _.", "Well \u2026 so . Fine ."),
        ("_The _Br andTM _opened _in _T am pa", "The Brand\u2122 opened in Tampa"),
        ("_die _stra sse _ist _gro ss", "die Stra\u00dfe ist gro\u00df"),
        ("_un _caf\u00e9 _e", "un cafe\u0301 e"),
    ],
)
def test_rewritten_characters_do_not_move_later_pieces(spelled: str, text: str) -> None:
    """One half is written as 1/2: its 1 was found at the end of the text, and the words before it lost their tokens."""
    pieces = spelled.replace("_", "\u2581").split(" ")
    starts = [number for number, piece in enumerate(pieces) if piece.startswith("\u2581")]
    expected = [list(range(start, end)) for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True)]
    words = [word.span() for word in re.finditer(r"\S+", text)]
    assert pieces_of_words(words, _sought(pieces, text)) == expected


@pytest.mark.parametrize("text", ["Según la opinión, él cogió", "שלום “עולם” 😀 straße", "plain text."])
def test_bytes_belong_to_the_word_of_their_character(text: str) -> None:
    """The bytes of an accented letter are no letters: they were sought as such, and found in other words."""
    starts = [len(text[: word.start()].encode()) for word in re.finditer(r"\S+", text)]
    words = [word.span() for word in re.finditer(r"\S+", text)]
    expected = [
        list(range(first, first + len(text[start:end].encode())))
        for first, (start, end) in zip(starts, words, strict=True)
    ]
    assert pieces_of_words(words, piece_spans(ByT5Tokenizer(), text)) == expected


def test_a_piece_is_not_sought_far_ahead() -> None:
    assert _sought(["a", "x", "c", "d", "e", "x"], "a y c d e x") == [(0, 1), (1, 1), (4, 5), (6, 7), (8, 9), (10, 11)]
    assert _sought(["a", "?", "?", "?", "?", "f"], "a b c d e f")[-1] == (10, 11), "unknown words are passed over"
    assert _sought(["ab", "c"], "ab\u200b c")[-1] == (4, 5), "so are characters that are dropped"


@pytest.mark.parametrize("make", [byte_level, marian, word_piece, m2m_100, bytes_alone])
def test_pieces_are_what_the_tokenizer_gives(make: Any, tmp_path: Path) -> None:
    tokenizer = make(tmp_path)
    for text in (*(tree.text for tree in TREES), "\u00e9t\u00e9 \u4f60\u597d, dog"):
        assert pieces(tokenizer, text).ids == list(tokenizer(text)["input_ids"])


def test_words_that_share_tokens_are_one_unit() -> None:
    assert units([[1], [2, 3], [4]]) == [0, 1, 2]
    assert units([[1], [1], [2]]) == [0, 0, 1]
    assert units([[1], [2], [1, 2], [3]]) == [0, 0, 0, 1]
