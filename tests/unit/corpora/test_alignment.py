"""Words and pieces: every piece at its place in the text, for each kind of tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import BertTokenizer, PreTrainedTokenizerFast

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


@pytest.mark.parametrize("make", [byte_level, marian, word_piece, m2m_100])
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


@pytest.mark.parametrize("make", [byte_level, marian, word_piece, m2m_100])
def test_pieces_are_what_the_tokenizer_gives(make: Any, tmp_path: Path) -> None:
    tokenizer = make(tmp_path)
    for text in (*(tree.text for tree in TREES), "\u00e9t\u00e9 \u4f60\u597d, dog"):
        assert pieces(tokenizer, text).ids == list(tokenizer(text)["input_ids"])


def test_words_that_share_tokens_are_one_unit() -> None:
    assert units([[1], [2, 3], [4]]) == [0, 1, 2]
    assert units([[1], [1], [2]]) == [0, 0, 1]
    assert units([[1], [2], [1, 2], [3]]) == [0, 0, 0, 1]
