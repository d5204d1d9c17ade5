"""Early stopping: what it stops, what it leaves out, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
from headcount.errors import UsageError
from headcount.metrics import ACCURACY, LOSS
from headcount.scores.sequential import until_certain
from headcount.scores.variants import one_out
from headcount.studies.ablation import ablate
from tokens import sentences, word_tokenizer

COUNT = 400


@pytest.fixture(scope="module")
def setting() -> tuple[BertForSequenceClassification, object]:
    """A classifier in which one head does all: the output projections of the others are zero."""
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    model = BertForSequenceClassification(BertConfig(vocab_size=99, **size)).eval()
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.output.dense.weight.zero_()
        model.bert.encoder.layer[1].attention.output.dense.weight[:, 4:8].normal_(0, 3)
    texts = sentences(COUNT)
    tokens = word_tokenizer()(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        scores = model(**tokens).logits.diff(dim=-1)[:, 0]
        model.classifier.bias += torch.tensor([float(scores.median()), 0.0])  # both answers are equally frequent
        labels = model(**tokens).logits.argmax(-1).tolist()  # what the model says is right
    ordered = sorted(range(COUNT), key=lambda row: labels[row])
    data = {"texts": [texts[row] for row in ordered], "labels": [labels[row] for row in ordered]}
    return model, hc.task("classification", **data, tokenizer=word_tokenizer())


def test_only_what_matters_stops_early(setting: tuple[torch.nn.Module, object]) -> None:
    model, task = setting
    stopped = dict(zip(hc.locate(model).heads, until_certain(model, task, ACCURACY, one_out(model)), strict=True))
    crucial = stopped.pop(hc.Head.parse("encoder.1.1"))
    assert crucial.p < 0.01 / 8
    assert crucial.examples < COUNT
    assert crucial.difference.high < 0
    assert all(other.examples == COUNT and other.p == 1.0 for other in stopped.values())


def test_examples_come_in_a_random_order(setting: tuple[torch.nn.Module, object]) -> None:
    """The data are sorted by label; what was seen when the first head stopped is not."""
    model, task = setting
    crucial = until_certain(model, task, ACCURACY, one_out(model))[5]
    changed = crucial.outcome.base[:, 0] - crucial.outcome.variants[0, :, 0]
    whole = ablate(model, task, alone=False).parts.one_out["encoder.1.1"]
    assert changed.mean() == pytest.approx(-whole.difference, abs=0.2)


def test_the_study_says_how_many_examples_it_took(setting: tuple[torch.nn.Module, object]) -> None:
    model, task = setting
    early = ablate(model, task, early=True, alone=False).parts.one_out
    whole = ablate(model, task, alone=False).parts.one_out
    assert early["encoder.1.1"].examples < whole["encoder.1.1"].examples == COUNT
    assert early["encoder.1.1"].corrected < 0.01
    assert early["encoder.1.1"].low <= whole["encoder.1.1"].difference <= early["encoder.1.1"].high
    full = [head for head in early if early[head].examples == COUNT]
    assert len(full) == 7
    for head in full:
        assert np.isclose(early[head].difference, whole[head].difference)


def test_the_whole_model_is_measured_on_all_examples_wherever_the_heads_stop() -> None:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 32}
    model = BertForSequenceClassification(BertConfig(vocab_size=99, **size)).eval()
    texts, tokenizer = sentences(COUNT), word_tokenizer()
    tokens = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        model.bert.encoder.layer[0].attention.output.dense.weight.normal_(0, 9)
        scores = model(**tokens).logits.diff(dim=-1)[:, 0]
        model.classifier.bias += torch.tensor([float(scores.median()), 0.0])
        labels = model(**tokens).logits.argmax(-1).tolist()
    labels = [1 - label if row % 10 == 0 else label for row, label in enumerate(labels)]
    task = hc.task("classification", texts=texts, labels=labels, tokenizer=tokenizer)
    early, whole = (ablate(model, task, early=early, alone=False).parts for early in (True, False))
    assert early.one_out["encoder.0.0"].examples < COUNT
    assert early.value == whole.value == 0.9
    assert early.stopped_early
    assert not whole.stopped_early


def test_an_unbounded_metric_is_refused(setting: tuple[torch.nn.Module, object]) -> None:
    model, task = setting
    with pytest.raises(UsageError, match="only with accuracy, a mean of bounded values; got loss"):
        until_certain(model, task, LOSS, one_out(model))
