"""Which examples tasks share, told by the examples and not by whole files."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import headcount as hc
from headcount.corpora.examples import example_hash, in_first_half
from headcount.errors import UsageError
from headcount.record.result import MeasuredOn, Texts
from headcount.report.measured import measured_sentence
from headcount.tasks.overlap import check_apart, measured_on
from tokens import sentences, word_tokenizer

TEXTS = sentences(40, seed=4)


def plain(texts: list[str], **options: Any) -> Any:
    return hc.task("language-modelling", texts=texts, tokenizer=word_tokenizer(), **options)


def labelled(texts: list[str], label: int = 0) -> Any:
    return hc.task("classification", texts=texts, labels=[label] * len(texts), tokenizer=word_tokenizer())


def test_examples_are_compared_not_files() -> None:
    first, second = plain(TEXTS[:20]), plain(TEXTS[20:])
    assert measured_on([first], second) == MeasuredOn(None, 20, (Texts(None, 20),), overlap=0, held_out=True)
    for chosen, overlap in (([first, plain(TEXTS[30:])], 10), ([plain(TEXTS[::-1])], 20), ([second, second], 20)):
        found = measured_on(chosen, second)
        assert (found.overlap, found.held_out) == (overlap, False)
    assert measured_on([plain(TEXTS, max_length=3)], second).overlap == 20, "however they are cut"
    assert measured_on([labelled(TEXTS, 0)], labelled(TEXTS[:5], 1)).overlap == 5, "whatever their label"


def test_white_space_around_a_text_makes_no_other_example() -> None:
    """SST-2 has a space after every sentence; plain text is read without it."""
    spaced = [f" {text}\n" for text in TEXTS]
    assert measured_on([labelled(spaced)], plain(TEXTS[:5])).overlap == 5
    assert example_hash("a", "b") == example_hash("a ", "\tb")
    assert example_hash("a b") == "acc9227cc02e5f5c13e74125bce89499", "as in the records of earlier versions"


def test_examples_of_masked_texts_are_known() -> None:
    tokenizer = word_tokenizer(mask="w98")
    tasks = [hc.task("masked-language-modelling", texts=texts, tokenizer=tokenizer) for texts in (TEXTS, TEXTS[:5])]
    assert measured_on(tasks[:1], tasks[1]).overlap == 5


def test_of_batches_only_the_whole_is_known() -> None:
    batches = [[{"input_ids": torch.full((2, 3), token)}] for token in (1, 2)]
    ones, twos = (hc.task.of(given, nll=lambda *_: torch.ones(2)) for given in batches)
    assert measured_on([ones], ones).held_out is False
    assert measured_on([ones], twos).held_out is None
    assert "unknown" in measured_sentence(measured_on([ones], twos))


def test_the_line_of_a_record() -> None:
    task, other = plain(TEXTS[:1]), plain(TEXTS[1:4])
    task.split, other.split = "test", "dev"
    assert measured_sentence(measured_on([other], task)) == (
        "Measured on 1 text of test, held out: heads were chosen on 3 texts of dev."
    )
    assert measured_sentence(measured_on([task], task)).startswith("NOT held out: measured on 1 text of test, the same")
    assert measured_sentence(measured_on([plain(TEXTS[3:])], other)).endswith("heads were chosen on 1 of them.")


def test_learning_from_what_is_measured_is_refused_by_example() -> None:
    check_apart(plain(TEXTS[:20]), plain(TEXTS[19:]))
    check_apart(plain(TEXTS), None)
    with pytest.raises(UsageError, match="is also in the training data"):
        check_apart(plain(TEXTS), plain(TEXTS[5:9]))


def test_halves_are_of_examples() -> None:
    halves = [in_first_half(example_hash(text)) for text in TEXTS]
    assert 10 < sum(halves) < 30
    assert example_hash("a", "b") != example_hash("ab") != example_hash("a b")
