"""Embedding: how far the output moves, against a loop over single texts and heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headcount as hc
import zoo
from headcount.errors import UsageError
from headcount.tasks.task import token_hash
from tokens import sentences, word_tokenizer

TEXTS = sentences(7)


def task(model: nn.Module, **options: Any) -> Any:
    return hc.task("embedding", texts=TEXTS, tokenizer=word_tokenizer(), model=model, **options)


def embedding(model: Any, text: str) -> torch.Tensor:
    states = model.base_model(**word_tokenizer()(text, return_tensors="pt")).last_hidden_state
    return states[0].double().mean(0)


@pytest.mark.parametrize("architecture", ["xlm-roberta", "llama"])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_one_head_out_is_a_loop_over_heads_and_texts(architecture: str, batch_size: int) -> None:
    model = zoo.build(architecture)
    scores = hc.score("ablation", model, task(model, batch_size=batch_size))
    sites = hc.locate(model)
    with torch.no_grad():
        whole = [embedding(model, text) for text in TEXTS]
        for head in sites.heads[::5]:
            with hc.masked(model, sites.mask(off=[head])):
                changed = [embedding(model, text) for text in TEXTS]
            distances = [
                1 - float(torch.dot(one, other) / one.norm() / other.norm())
                for one, other in zip(whole, changed, strict=True)
            ]
            assert scores[head] == pytest.approx(np.mean(distances), abs=1e-7)
            assert scores[head] > 0


def test_the_whole_model_does_not_move_and_a_pruned_one_does() -> None:
    model = zoo.build("xlm-roberta")
    data = task(model)
    quality = data.quality(model)
    assert quality.name == "cosine distance"
    assert not quality.metric.higher_is_better
    assert quality.value == pytest.approx(0, abs=1e-9)
    small = hc.remove(model, hc.locate(model).mask(off=["encoder.0.0", "encoder.1.2"]))
    assert data.quality(small).value > 1e-4


def test_models_that_embed_differently_are_different_data() -> None:
    first, second = (task(zoo.build("xlm-roberta", seed=seed)) for seed in (0, 1))
    assert first.fingerprint != second.fingerprint


@pytest.mark.parametrize("score", ["gradient", "fisher"])
def test_scores_by_gradients_are_refused(score: str) -> None:
    model = zoo.build("xlm-roberta")
    with pytest.raises(UsageError, match="every derivative is zero"):
        hc.score(score, model, task(model))


def test_an_encoder_decoder_is_refused(marian: nn.Module) -> None:
    with pytest.raises(UsageError, match="needs a model with one stack"):
        task(marian)


def test_a_model_of_texts_and_images_is_refused() -> None:
    model = zoo.build("clip")
    with pytest.raises(UsageError, match=r"CLIPModel compares texts with images.*one stack"):
        task(model)


def test_a_text_without_tokens_is_no_example() -> None:
    model = zoo.build("gpt2")
    filled, mixed = (
        hc.task("embedding", texts=texts, tokenizer=word_tokenizer(), model=model) for texts in (TEXTS, [*TEXTS, ""])
    )
    assert mixed.quality(model).statistics[-1].tolist() == [0, 0]
    assert mixed.quality(model).value == pytest.approx(0, abs=1e-9)
    found, expected = (hc.score("ablation", model, data).numbers() for data in (mixed, filled))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


def test_texts_without_any_token_are_refused() -> None:
    model = zoo.build("gpt2")
    with pytest.raises(UsageError, match="Every text is empty"):
        hc.task("embedding", texts=["", " "], tokenizer=word_tokenizer(), model=model)


def test_a_text_longer_than_the_positions_of_a_model_is_refused_with_the_limit() -> None:
    model, long = zoo.build("gpt2"), " ".join(["w5"] * 70)
    with pytest.raises(UsageError, match=r"70 tokens.*positions for 64.*max_length=64"):
        hc.task("embedding", texts=[long], tokenizer=word_tokenizer(), model=model)


def test_the_hash_of_tokens_does_not_depend_on_the_size_of_batches() -> None:
    model = zoo.build("xlm-roberta")
    assert token_hash(task(model, batch_size=2)) == token_hash(task(model, batch_size=5))


def test_the_whole_model_is_at_no_distance_from_itself() -> None:
    """Rounding made it 1e-16, with an interval from 7e-17 to 1e-16."""
    model = zoo.build("bert")
    task = hc.task("embedding", texts=sentences(12), tokenizer=word_tokenizer(), model=model)
    assert task.quality(model).interval() == (0, 0, 0)
