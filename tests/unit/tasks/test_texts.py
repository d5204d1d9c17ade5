"""Texts of tokenizers that cannot pad."""

from __future__ import annotations

import warnings

import pytest

import headcount as hc
import zoo
from headcount.corpora.sentences import Sentences
from headcount.errors import UsageError
from headcount.studies.roles import look
from tokens import sentences, word_tokenizer


def test_a_tokenizer_without_a_padding_token_gives_the_same_quality_and_stays_as_it_is() -> None:
    model, texts = zoo.build("llama"), sentences(5)
    with_padding = hc.task("language-modelling", texts=texts, tokenizer=word_tokenizer(), batch_size=3)
    tokenizer = word_tokenizer()
    tokenizer.pad_token = None
    without = hc.task("language-modelling", texts=texts, tokenizer=tokenizer, batch_size=3)
    assert without.quality(model).value == pytest.approx(with_padding.quality(model).value, rel=1e-6)
    assert tokenizer.pad_token is None


def test_a_tokenizer_that_cannot_pad_at_all_is_refused() -> None:
    tokenizer = word_tokenizer()
    tokenizer.pad_token = tokenizer.eos_token = None
    task = hc.task("language-modelling", texts=sentences(2), tokenizer=tokenizer)
    with pytest.raises(UsageError, match=r"tokenizer\.pad_token"):
        task.quality(zoo.build("llama"))


@pytest.mark.parametrize("max_length", [-3, 0, 1, 2])
def test_special_tokens_do_not_fill_a_text(max_length: int) -> None:
    """A tokenizer truncates nothing if a text without words would still be too long."""
    tokenizer = word_tokenizer(framed=True)
    with pytest.raises(UsageError, match=f"at least 3, because the tokenizer adds 2 special tokens.*got {max_length}"):
        hc.task("language-modelling", texts=["w5 w6 w7"], tokenizer=tokenizer, max_length=max_length)
    task = hc.task("language-modelling", texts=["w5 w6 w7"], tokenizer=tokenizer, max_length=3)
    (batch,) = task.batches()
    assert batch["input_ids"].tolist() == [[1, 5, 2]]


@pytest.mark.parametrize("tokenizer", [None, "bert-base-uncased"])
def test_what_is_no_tokenizer_is_refused(tokenizer: str | None) -> None:
    with pytest.raises(UsageError, match=f"tokenizer must be the tokenizer of the model.*got {tokenizer!r}"):
        hc.task("language-modelling", texts=["w5 w6 w7"], tokenizer=tokenizer)


def test_a_start_token_that_a_text_and_the_tokenizer_write_is_warned_of() -> None:
    framed, bare = word_tokenizer(framed=True), word_tokenizer()
    with pytest.warns(UserWarning, match="2 texts begin with <s>, which the tokenizer adds too"):
        hc.task("language-modelling", texts=["<s> w5 w6", "w7 w8", "<s> w9"], tokenizer=framed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hc.task("language-modelling", texts=["w5 w6"], tokenizer=framed)
        hc.task("language-modelling", texts=["<s> w5 w6"], tokenizer=bare)


def test_words_that_the_tokenizer_does_not_know_are_warned_of() -> None:
    tokenizer = word_tokenizer()
    tokenizer.unk_token = "w3"
    with pytest.warns(UserWarning, match=r"67% of the tokens of 2 texts are w3, words that the tokenizer does not"):
        hc.task("language-modelling", texts=["w5 der Hund", "w6 lief weg"], tokenizer=tokenizer)
    with pytest.warns(UserWarning, match="does not know"):
        hc.task("translation", source=["der Hund"], target=["w5 w6"], tokenizer=tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hc.task("language-modelling", texts=["w5 w6 w7 w8 w9 Hund"], tokenizer=tokenizer)


def test_texts_that_repeat_others_are_warned_of() -> None:
    """With half of the texts copies of the others, 17% of the intervals of a loss left out the truth."""
    tokenizer, texts = word_tokenizer(), sentences(20)
    with pytest.warns(UserWarning, match=r"50% of 40 texts are the same as others\. .* intervals are too narrow"):
        hc.task("language-modelling", texts=texts * 2, tokenizer=tokenizer)
    with pytest.warns(UserWarning, match="50% of 40 texts"):
        hc.task("translation", source=texts * 2, target=sentences(40, seed=1), tokenizer=tokenizer)
    with pytest.warns(UserWarning, match="50% of 40 texts"):
        look(zoo.build("bert"), Sentences(texts * 2), tokenizer, resamples=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hc.task("language-modelling", texts=[*texts, texts[0]], tokenizer=tokenizer)
        pairs = {"texts": [texts[0]] * 20, "pairs": texts, "labels": [0, 1] * 10}
        hc.task("classification", **pairs, tokenizer=tokenizer)
