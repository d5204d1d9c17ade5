"""Learned pruning of classifiers and language models: what they can do, they can do with fewer heads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

import headcount as hc
from tokens import word_tokenizer

SIZE: dict[str, Any] = {
    "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip
GOOD, BAD = "w10", "w11"
TEXTS = [f"w5 {noun} w6 {how}{mood}" for noun in ("w7", "w8") for how in ("", "w9 ") for mood in (GOOD, BAD)] * 12
LABELS = [int(GOOD in text) for text in TEXTS]
TUNING = hc.Tuning(steps=60, batch=80, chunk=80, rate=1e-2)
TRAINING: dict[str, Any] = {"steps": 60, "gate_rate": 0.2, "tune": TUNING}


def classifier() -> tuple[Any, Any]:
    task = hc.task("classification", texts=TEXTS, labels=LABELS, tokenizer=word_tokenizer(32))
    return BertForSequenceClassification(BertConfig(**SIZE, num_labels=2)), task


def writer() -> tuple[Any, Any]:
    """With groups: two heads share a key/value head."""
    task = hc.task("language-modelling", texts=TEXTS, tokenizer=word_tokenizer(32))
    return LlamaForCausalLM(LlamaConfig(**SIZE, num_key_value_heads=2)), task


@pytest.mark.parametrize(
    ("made", "method", "options"),
    [
        (classifier, "l0", {}),
        (writer, "subset", {"hot": 1.0}),
        pytest.param(classifier, "subset", {"hot": 1.0}, marks=pytest.mark.slow),
        pytest.param(writer, "l0", {}, marks=pytest.mark.slow),
    ],
)
def test_a_quarter_of_the_heads_learns_the_task(made: Any, method: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model, task = made()
    model.eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    found = hc.prune(model, task, choose=method, keep=hc.Budget(heads=2), measure_on=task, **TRAINING, **options)
    assert len(hc.locate(found.model).heads) == 2
    quality = found.record.parts.quality
    first, last = quality.before.value, quality.after.value
    if made is classifier:
        assert last > 0.95 > first
    else:
        assert last < 0.3 * first  # perplexity
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
