"""Early stopping: its error rate, its power, and what it leaves out."""

from __future__ import annotations

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
from headcount.metrics import LOSS, PERPLEXITY
from headcount.scores.sequential import Bets, influence, until_certain
from headcount.scores.variants import one_out
from headcount.studies.ablation import ablate
from tokens import sentences, word_tokenizer


def test_the_error_rate_holds_whenever_one_looks() -> None:
    """4000 experiments in which nothing matters, looked at after each of 30 batches; heavy tails and skipped zeros."""
    random, alpha, runs = np.random.default_rng(0), 0.05, 4000
    bets, lowest = Bets(runs), np.ones(runs)
    scale = 0.0
    for _ in range(30):
        effects = random.standard_t(2, size=(runs, 10)) * (random.random((runs, 10)) < 0.6)
        bets.add(range(runs), effects, scale)
        scale = 1.0
        lowest = np.minimum(lowest, bets.p())
    wrong = np.mean(lowest < alpha)
    assert wrong <= alpha
    assert wrong > 0.002, "the test can reject"


def test_a_real_effect_is_found_and_soon() -> None:
    random, bets = np.random.default_rng(1), Bets(1)
    for _ in range(12):
        bets.add([0], random.normal(0.7, 1, size=(1, 10)), 1.0)
    assert bets.p()[0] < 1e-4


def test_capital_is_the_mean_over_stakes_of_products() -> None:
    bets, values = Bets(1), np.array([0.5, -0.2, 3.0, 0.0])
    bets.add([0], values[None], 2.0)
    e = np.mean(
        [
            np.prod(1 + sign * size * np.clip(values / 2, -1, 1))
            for size in (0.05, 0.1, 0.2, 0.4, 0.8)
            for sign in (1, -1)
        ]
    )
    assert np.isclose(bets.p()[0], min(1, 1 / e))


def test_influence_is_antisymmetric_and_exact_for_means() -> None:
    random = np.random.default_rng(2)
    one, other = (np.stack([random.uniform(1, 9, 20), np.full(20, 4.0)], axis=1) for _ in range(2))
    for metric in (LOSS, PERPLEXITY):
        np.testing.assert_allclose(influence(metric, one, other), -influence(metric, other, one), rtol=1e-12)
    np.testing.assert_allclose(influence(LOSS, one, other), (other - one)[:, 0] / 80, rtol=1e-6)


def setting() -> tuple[BertForSequenceClassification, object]:
    """A classifier in which one head does all: the output projections of the others are zero."""
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    model = BertForSequenceClassification(BertConfig(vocab_size=99, **size)).eval()
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.output.dense.weight.zero_()
        model.bert.encoder.layer[1].attention.output.dense.weight[:, 4:8].normal_(0, 3)
    texts = sentences(120)
    with torch.no_grad():
        tokens = word_tokenizer()(texts, padding=True, return_tensors="pt")
        labels = model(**tokens).logits.argmax(-1).tolist()  # what the model says is right
    batches = [
        {
            **word_tokenizer()(texts[start : start + 10], padding=True, return_tensors="pt"),
            "labels": torch.tensor(labels[start : start + 10]),
        }
        for start in range(0, 120, 10)
    ]

    def nll(live: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        inputs = {name: value for name, value in batch.items() if name != "labels"}
        return torch.nn.functional.cross_entropy(live(**inputs).logits, batch["labels"], reduction="none")

    return model, hc.task.of(batches, nll=nll)


def test_only_what_matters_stops_early() -> None:
    model, task = setting()
    found = dict(zip(hc.locate(model).heads, until_certain(model, task, LOSS, one_out(model)), strict=True))
    crucial = found.pop(hc.Head.parse("encoder.1.1"))
    assert crucial.p < 0.01 / 8
    assert crucial.examples < 120
    assert all(other.examples == 120 for head, other in found.items() if other.p >= 0.01 / 8)
    assert sum(other.p >= 0.01 / 8 for other in found.values()) == 7


def test_the_study_says_how_many_examples_it_took() -> None:
    model, task = setting()
    early = ablate(model, task, early=True, alone=False).parts.one_out
    whole = ablate(model, task, alone=False).parts.one_out
    assert early["encoder.1.1"].examples < whole["encoder.1.1"].examples == 120
    assert early["encoder.1.1"].corrected < 0.01
    same = [head for head in early if early[head].examples == 120]
    assert same
    for head in same:
        assert np.isclose(early[head].difference, whole[head].difference)
