"""What must hold for every decoder: numbers do not depend on batches, nor on the side that a tokenizer pads on."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

import headcount as hc
import zoo
from headcount.scores.variants import measure, one_out
from tokens import sentences, word_tokenizer

TEXTS = sentences(3, seed=1, shortest=2, longest=14)
LABELS = [number % 2 for number in range(len(TEXTS))]
ROUNDING = 1e-4  # of the largest value: float32, and ablation is a small difference of large losses


@lru_cache(maxsize=2)
def language_model(architecture: str) -> Any:
    return zoo.build(architecture, zoo.backends(architecture)[-1])


@lru_cache(maxsize=2)
def classifier(architecture: str) -> Any:
    torch.manual_seed(0)
    config = language_model(architecture).config
    return AutoModelForSequenceClassification.from_config(config).eval()


def language_modelling(batch_size: int, *, left: bool = False) -> Any:
    tokenizer = word_tokenizer(left=left)
    return hc.task("language-modelling", texts=TEXTS, tokenizer=tokenizer, batch_size=batch_size, metric="loss")


def classification(batch_size: int, *, left: bool = False) -> Any:
    tokenizer = word_tokenizer(left=left)
    return hc.task("classification", texts=TEXTS, labels=LABELS, tokenizer=tokenizer, batch_size=batch_size)


def losses(model: Any, task: Any) -> np.ndarray:
    with torch.no_grad():
        return np.concatenate([task.nll(model, batch).numpy() for batch in task.batches()])


def ablation(model: Any, task: Any) -> np.ndarray:
    """[V]: what is lost without each head, without the intervals of the score, which take seconds."""
    found = measure(model, task, one_out(model))
    return (found.variants - found.base)[..., 0].sum(-1)


def same(values: Any, expected: Any) -> None:
    np.testing.assert_allclose(values, expected, rtol=0, atol=ROUNDING * np.abs(expected).max())


@pytest.mark.parametrize("architecture", zoo.DECODERS)
def test_a_batch_of_texts_gives_what_each_text_gives_alone(architecture: str) -> None:
    """Padded on the left and on the right."""
    for model, task in ((language_model(architecture), language_modelling), (classifier(architecture), classification)):

        def measured(task: Any, model: Any = model) -> tuple[Any, Any, Any]:
            return losses(model, task), hc.score("gradient", model, task).numbers(), ablation(model, task)

        alone = measured(task(1))
        for left in (True, False):
            for values, expected in zip(measured(task(16, left=left)), alone, strict=True):
                same(values, expected)


@pytest.mark.parametrize("architecture", zoo.DECODERS)
def test_a_classifier_answers_at_the_last_token(architecture: str) -> None:
    """Also where the tokenizer pads with another id than the config names."""
    model, tokenizer = classifier(architecture), word_tokenizer(left=True)
    tokenizer.pad_token = "w98"
    task = hc.task("classification", texts=TEXTS, labels=LABELS, tokenizer=tokenizer, batch_size=16)
    (batch,) = task.batches()
    with torch.no_grad():
        logits_BC = task.logits(model, batch)[:, 0]
        for text, logits_C in zip(TEXTS, logits_BC, strict=True):
            states_TD = model.base_model(tokenizer(text, return_tensors="pt")["input_ids"]).last_hidden_state[0]
            same(logits_C, model.score(states_TD[-1]))


@pytest.mark.parametrize("method", ["relevance", "confidence"])
@pytest.mark.parametrize("architecture", ["gpt2", "opt", "llama"])
def test_other_scores_do_not_depend_on_the_side_of_padding(architecture: str, method: str) -> None:
    """Learned positions, learned positions that start after an offset, and rotary ones."""
    model, alone, together = language_model(architecture), language_modelling(1), language_modelling(16, left=True)
    same(hc.score(method, model, together).numbers(), hc.score(method, model, alone).numbers())


def test_roles_do_not_depend_on_the_side_of_padding() -> None:
    found = [
        hc.roles(language_model("gpt2"), TEXTS, tokenizer=word_tokenizer(left=left), tokens=tokens)
        for left, tokens in ((True, 4096), (False, 1))  # all texts in one batch, each text in one of its own
    ]
    for head in found[0].heads:
        together, alone = found[0][head], found[1][head]
        assert [(one.role, one.label, one.trials) for one in together] == [
            (one.role, one.label, one.trials) for one in alone
        ]
        same([one.value for one in together], [one.value for one in alone])
    together, alone = ([interval.value for _, interval in roles.confidence.items()] for roles in found)
    same(together, alone)
