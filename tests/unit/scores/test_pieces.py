"""Pieces: sums and collections over batches, interrupted, shared by processes, and always the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
from forks import shared_by
from headcount.errors import UsageError
from headcount.journal import Shelf
from headcount.scores import pieces
from headcount.scores.pieces import collected, shelf, summed
from tokens import sentences, word_tokenizer

NUMBERS = np.random.default_rng(0).normal(size=(7, 3))


def measure(batch: int) -> dict[str, np.ndarray]:
    return {"value": NUMBERS[batch], "count": np.ones(())}


def breaking(at: int) -> Iterator[int]:
    for number in range(len(NUMBERS)):
        if number == at:
            raise KeyboardInterrupt
        yield number


@pytest.mark.parametrize("at", range(len(NUMBERS)))
def test_an_interrupted_sum_is_that_of_an_uninterrupted_run(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "SECONDS", 0.0)
    whole = summed(range(len(NUMBERS)), measure)
    calls: list[int] = []

    def counted(batch: int) -> dict[str, np.ndarray]:
        calls.append(batch)
        return measure(batch)

    with pytest.raises(KeyboardInterrupt):
        summed(breaking(at), counted, finished=shelf(tmp_path, nn.Linear(1, 1), a_task(), {"of": "this"}))
    again = summed(range(len(NUMBERS)), counted, finished=shelf(tmp_path, nn.Linear(1, 1), a_task(), {"of": "this"}))
    assert np.array_equal(whole["value"], again["value"])
    assert calls == list(range(len(NUMBERS))), "no batch is measured twice"


def test_an_interrupted_collection_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        collected(breaking(4), measure, finished=shelf(tmp_path, nn.Linear(1, 1), a_task(), {"of": "this"}))
    calls: list[int] = []

    def counted(batch: int) -> dict[str, np.ndarray]:
        calls.append(batch)
        return measure(batch)

    found = collected(range(len(NUMBERS)), counted, finished=shelf(tmp_path, nn.Linear(1, 1), a_task(), {"of": "this"}))
    assert np.array_equal(np.stack([piece["value"] for piece in found]), NUMBERS)
    assert calls == [4, 5, 6]


def test_unfinished_work_of_other_settings_is_refused(tmp_path: Path) -> None:
    Shelf(tmp_path / "work", {"data": "a"})
    with pytest.raises(UsageError, match="data: a there, b now"):
        Shelf(tmp_path / "work", {"data": "b"})


def test_no_batches_is_an_error() -> None:
    with pytest.raises(UsageError, match="nothing to measure on"):
        summed([], measure)
    with pytest.raises(UsageError, match="nothing to measure on"):
        collected([], measure)


def a_model() -> nn.Module:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    return BertForSequenceClassification(BertConfig(vocab_size=99, **size)).eval()


def a_task() -> Any:
    texts = sentences(25)
    return hc.task(
        "classification",
        texts=texts,
        labels=[len(text) % 2 for text in texts],
        tokenizer=word_tokenizer(),
        batch_size=4,
    )


@pytest.mark.parametrize("name", ["gradient", "fisher", "ablation"])
def test_a_killed_score_goes_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "SECONDS", 0.0)
    whole = hc.score(name, a_model(), a_task())

    def stop(part: str, done: int, of: int) -> None:
        if done >= of / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hc.score(name, a_model(), a_task(), folder=tmp_path / "kept", progress=stop)
    assert list((tmp_path / "kept").rglob("*.safetensors"))
    again = hc.score(name, a_model(), a_task(), folder=tmp_path / "kept")
    assert np.array_equal(whole.numbers(), again.numbers())
    assert not list((tmp_path / "kept").rglob("*.safetensors")), "finished work is cleared away"


@pytest.mark.parametrize("name", ["ablation", "integrated-gradients"])
def test_progress_is_told_within_a_batch(name: str) -> None:
    """One batch of a large model can take longer than a user waits for a sign of life."""
    texts, told = sentences(4), list[float]()
    task = hc.task("classification", texts=texts, labels=[0, 1, 0, 1], tokenizer=word_tokenizer(), batch_size=4)
    hc.score(name, a_model(), task, progress=lambda _, done, of: told.append(done / of))
    assert (told[0], told[-1]) == (0, 1)
    assert told == sorted(told)
    assert 0.5 in told, "after the first of two layers"


def test_two_processes_give_the_scores_of_one() -> None:
    names = ("gradient", "fisher", "ablation")

    def numbers() -> dict[str, np.ndarray]:
        return {name: hc.score(name, a_model(), a_task()).numbers() for name in names}

    alone = numbers()
    for together in shared_by(2, numbers):
        for name in names:
            np.testing.assert_allclose(together[name], alone[name], rtol=1e-12, atol=0)


def test_options_that_a_score_lacks_are_said() -> None:
    with pytest.raises(UsageError, match="magnitude score has no option 'granularity'; it has normalize"):
        hc.score("magnitude", a_model(), a_task(), granularity="token")


@pytest.mark.parametrize(
    ("preset", "granularity"),
    [("michel2019-paper", "example"), ("michel2019-code", "token"), ("hf-bertology", "batch")],
)
def test_presets_are_what_others_did(preset: str, granularity: str) -> None:
    one = hc.score("gradient", a_model(), a_task(), preset=preset)
    other = hc.score("gradient", a_model(), a_task(), granularity=granularity, normalize=True)
    assert np.array_equal(one.numbers(), other.numbers())
    with pytest.raises(UsageError, match="michel2019-paper"):
        hc.score("gradient", a_model(), a_task(), preset="nobody")


def test_unfinished_work_knows_how_its_data_are_cut(tmp_path: Path) -> None:
    """Sums are numbered by batch: with batches of another size they would be of other examples."""

    def task(size: int) -> Any:
        texts = sentences(25)
        labels = [len(text) % 2 for text in texts]
        return hc.task("classification", texts=texts, labels=labels, tokenizer=word_tokenizer(), batch_size=size)

    def stop(part: str, done: int, of: int) -> None:
        if done >= of / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hc.score("ablation", a_model(), task(4), folder=tmp_path / "kept", progress=stop)
    with pytest.raises(UsageError, match="'batch_size': 4"):
        hc.score("ablation", a_model(), task(2), folder=tmp_path / "kept")
