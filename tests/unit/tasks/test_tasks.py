"""Tasks: losses and qualities against loops over single examples, and wrong input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2ForSequenceClassification

import headcount as hc
import zoo
from headcount.errors import UnknownName, UsageError
from headcount.tasks.task import tasks
from tokens import sentences, word_tokenizer

TEXTS, LABELS = sentences(11), [i % 2 for i in range(11)]


@pytest.mark.parametrize("batch_size", [1, 4, 11, 50])
def test_classification_is_a_loop_over_examples(bert: nn.Module, batch_size: int) -> None:
    tokenizer = word_tokenizer()
    task = hc.task("classification", texts=TEXTS, labels=LABELS, tokenizer=tokenizer, batch_size=batch_size)
    with torch.no_grad():
        found = torch.cat([task.nll(bert, batch) for batch in task.batches()])
        alone = [bert(**tokenizer(text, return_tensors="pt")).logits[0].log_softmax(-1) for text in TEXTS]
    expected = [-float(scores[label]) for scores, label in zip(alone, LABELS, strict=True)]
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-5)
    quality = task.quality(bert)
    right = [int(scores.argmax()) == label for scores, label in zip(alone, LABELS, strict=True)]
    assert quality.name == "accuracy"
    assert quality.statistics[:, 0].tolist() == [int(value) for value in right]
    assert quality.value == pytest.approx(np.mean(right))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_labels": 1}, "one number for each text"),
        ({"num_labels": 2, "problem_type": "regression"}, "predicts numbers"),
        ({"num_labels": 2, "problem_type": "multi_label_classification"}, "a probability of its own"),
    ],
)
def test_models_that_do_not_choose_one_class_are_refused(settings: dict[str, Any], message: str) -> None:
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertForSequenceClassification(BertConfig(vocab_size=99, **size, **settings))
    labels = [label % settings["num_labels"] for label in LABELS[:2]]
    task = hc.task("classification", texts=TEXTS[:1], labels=labels[:1], tokenizer=word_tokenizer())
    for measure in (lambda: task.quality(model), lambda: hc.score("gradient", model, task)):
        with pytest.raises(UsageError, match=message):
            measure()


@pytest.mark.parametrize("padding", [None, -1])
def test_a_decoder_without_a_padding_id_classifies_texts_one_by_one(padding: int | None) -> None:
    config = GPT2Config(vocab_size=99, n_embd=16, n_layer=1, n_head=2, pad_token_id=padding)
    model = GPT2ForSequenceClassification(config).eval()
    settings: dict[str, Any] = {"texts": TEXTS, "labels": LABELS, "tokenizer": word_tokenizer()}
    with pytest.raises(UsageError, match=r"no pad_token_id.*--batch-size 1"):
        hc.task("classification", batch_size=4, **settings).quality(model)
    found = hc.task("classification", batch_size=1, metric="accuracy", **settings).quality(model)
    with torch.no_grad():
        answers = [int(model(**word_tokenizer()(text, return_tensors="pt")).logits.argmax()) for text in TEXTS]
    assert found.statistics[:, 0].tolist() == [int(a == b) for a, b in zip(answers, LABELS, strict=True)]
    hc.score(
        "ablation", model, hc.task("classification", batch_size=1, **settings)
    )  # heads are not masked in one batch


@pytest.mark.parametrize("left", [True, False])
def test_language_modelling_is_a_loop_over_tokens(llama: nn.Module, left: bool) -> None:
    tokenizer = word_tokenizer(left=left)
    task = hc.task("language-modelling", texts=TEXTS, tokenizer=tokenizer, batch_size=4)
    expected, tokens = [], []
    with torch.no_grad():
        for text in TEXTS:
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            scores = llama(ids).logits[0].log_softmax(-1)
            expected.append(-sum(float(scores[place, ids[0, place + 1]]) for place in range(ids.shape[1] - 1)))
            tokens.append(ids.shape[1] - 1)
        found = torch.cat([task.nll(llama, batch) for batch in task.batches()])
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-3)
    quality = task.quality(llama)
    assert quality.value == pytest.approx(math.exp(sum(expected) / sum(tokens)), rel=1e-4)
    assert quality.statistics[:, 1].tolist() == tokens


@pytest.mark.parametrize(
    ("name", "architecture"), [("language-modelling", "llama"), ("masked-language-modelling", "roberta")]
)
def test_labels_are_smoothed_in_training_and_not_in_measuring(name: str, architecture: str) -> None:
    model, task = zoo.build(architecture), hc.task(name, texts=TEXTS, tokenizer=word_tokenizer(mask="w98"))
    (batch,) = task.batches()
    with torch.no_grad():
        plain, measured = float(task.loss(model, batch)), task.held_out(model)
        predicted = task.predicted(batch)
        smooth = -task.logits(model, batch)[predicted].log_softmax(-1).mean(-1).mean()  # every token as likely
        task.smoothing = 0.5
        assert float(task.loss(model, batch)) == pytest.approx(0.5 * plain + 0.5 * float(smooth), rel=1e-5)
    assert task.held_out(model) == measured


def test_the_loss_of_a_large_vocabulary_is_exact_to_the_last_digits() -> None:
    """Sums over 50,000 exponentials in single precision."""
    logits = 3 * torch.randn(2, 6, 50_000, generator=torch.Generator().manual_seed(0))
    batch = {"attention_mask": torch.ones(2, 6, dtype=torch.long), "labels": torch.tensor([[7, 40, 3, 9, 1, 2]] * 2)}
    task = hc.task("language-modelling", texts=["w5 w6"], tokenizer=word_tokenizer())
    exact = -logits[:, :-1].double().log_softmax(-1).gather(-1, batch["labels"][:, 1:, None]).sum()
    assert float(task.logits_loss(logits, batch)) == pytest.approx(float(exact), rel=1e-6)


def test_the_first_token_after_left_padding_is_not_predicted(llama: nn.Module) -> None:
    """In a batch of one's own; those of the task are padded on the right."""
    task = hc.task("language-modelling", texts=["w5 w6 w7"], tokenizer=word_tokenizer())
    (alone,) = task.batches()
    padded = {name: nn.functional.pad(value, (2, 0), value=0) for name, value in alone.items()}
    with torch.no_grad():
        found, expected = task.measure(llama, padded), task.measure(llama, alone)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_batches_of_ones_own(bert: nn.Module) -> None:
    batches = [{"input_ids": torch.tensor([[3, 4], [5, 6]]), "labels": torch.tensor([0, 1])}]

    def nll(model: nn.Module, batch: Any) -> torch.Tensor:
        return nn.functional.cross_entropy(model(batch["input_ids"]).logits, batch["labels"], reduction="none")

    task = hc.task.of(batches, nll=nll)
    assert task.nll(bert, batches[0]).shape == (2,)
    assert task.quality(bert).value == pytest.approx(task.loss(bert, batches[0]).item())
    mean = hc.task.of(batches, nll=lambda model, batch: nll(model, batch).mean())
    with pytest.raises(UsageError, match="reduction='none'"):
        mean.nll(bert, batches[0])
    with pytest.raises(UsageError, match="several times"):
        hc.task.of(iter(batches), nll=nll)


def test_batches_that_change_from_one_reading_to_the_next_are_refused(bert: nn.Module) -> None:
    """What the whole model computes for an example would be compared with what the pruned one does for another."""
    examples = [{"input_ids": torch.tensor([word, 7, 8])} for word in range(3, 15)]

    def task(**options: Any) -> Any:
        loader = DataLoader(examples, batch_size=4, **options)
        return hc.task.of(loader, nll=lambda model, batch: model(**batch).logits.square().mean(1))

    mask = hc.locate(bert).mask(off="encoder.0.1")
    hc.compensate(bert, mask, task(), "lstsq")
    for options in ({}, {"generator": torch.Generator().manual_seed(0)}):
        with pytest.raises(UsageError, match=r"Batch 0 is not the same each time.*shuffle=False"):
            hc.compensate(bert, mask, task(shuffle=True, **options), "lstsq")
    popped = hc.task.of([dict(examples[0])], nll=lambda _, batch: batch.pop("input_ids").double())
    popped.quality(bert)
    with pytest.raises(UsageError, match="nll must not change its batch"):
        popped.quality(bert)


@pytest.mark.parametrize(
    ("name", "architecture"),
    [("language-modelling", "gpt2"), ("masked-language-modelling", "roberta"), ("classification", "bert")],
)
def test_an_empty_text_alone_in_its_batch_is_as_beside_others(name: str, architecture: str) -> None:
    texts, model = ["", *sentences(5), ""], zoo.build(architecture)
    labels = {"labels": [0, 1, 0, 1, 0, 1, 0]} if name == "classification" else {}
    given = {"texts": texts, "tokenizer": word_tokenizer(mask="w98"), **labels}
    for further in ({}, {"max_length": 4}):
        alone, together = (hc.task(name, batch_size=size, **given, **further).quality(model) for size in (1, 7))
        np.testing.assert_allclose(alone.statistics, together.statistics, rtol=1e-5)
    one = hc.task(name, batch_size=1, **given)
    other = hc.task(name, batch_size=7, **given)
    scores = [hc.score("ablation", model, task).numbers() for task in (one, other)]
    np.testing.assert_allclose(*scores, atol=1e-4)  # of a perplexity of 100, in single precision


def test_texts_and_labels_of_any_container_are_taken_in_their_order(bert: nn.Module) -> None:
    texts, labels = sentences(8), [0, 1] * 4
    table = pd.DataFrame({"text": texts, "pair": texts[::-1], "label": labels}).sample(frac=1, random_state=0)
    columns = {"texts": table["text"], "pairs": table["pair"], "labels": table["label"]}
    expected = hc.task(
        "classification", tokenizer=word_tokenizer(framed=True), **{name: list(rows) for name, rows in columns.items()}
    )
    for of in (lambda rows: rows, iter, np.array):
        given = {name: of(rows) for name, rows in columns.items()}
        task = hc.task("classification", tokenizer=word_tokenizer(framed=True), **given)
        assert task.fingerprint == expected.fingerprint
        assert task.example_hashes == expected.example_hashes
        np.testing.assert_array_equal(task.quality(bert).statistics, expected.quality(bert).statistics)
    for name in ("language-modelling", "masked-language-modelling"):
        marks = word_tokenizer(framed=True, mask="w4")
        given, listed = (hc.task(name, texts=rows, tokenizer=marks) for rows in (iter(texts), texts))
        assert given.fingerprint == listed.fingerprint


def test_data_is_told_apart_by_its_fingerprint() -> None:
    tokenizer = word_tokenizer()
    first, same, other = (
        hc.task("classification", texts=TEXTS, labels=labels, tokenizer=tokenizer)
        for labels in (LABELS, LABELS, [0] * 11)
    )
    assert first.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize("options", [{"batch_size": 2.5}, {"max_length": "a"}, {"max_length": 8.0}])
def test_sizes_are_whole_numbers(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(options))} must be a whole number.*; got (float|str)"):
        hc.task("language-modelling", texts=TEXTS, tokenizer=word_tokenizer(), **options)
    hc.task("language-modelling", texts=TEXTS, tokenizer=word_tokenizer(), batch_size=np.int64(4))


def test_qualities_of_other_examples_or_metrics_are_not_compared(bert: nn.Module) -> None:
    texts, tokenizer = sentences(20), word_tokenizer()

    def quality(rows: slice, **options: Any) -> Any:
        labels = [0, 1] * (len(texts[rows]) // 2)
        return hc.task("classification", texts=texts[rows], labels=labels, tokenizer=tokenizer, **options).quality(bert)

    first = quality(slice(12))
    assert quality(slice(12), batch_size=5).against(first).difference == 0
    for other, message in (
        (quality(slice(20)), "this one is of 20 examples, the reference of 12"),
        (quality(slice(8, 20)), "this one is of the data .*, the reference of "),
        (quality(slice(12), metric="f1"), "this one is F1, the reference accuracy"),
    ):
        with pytest.raises(UsageError, match=f"{message}.*with the same task"):
            other.against(first)


def test_wrong_input(bert: nn.Module) -> None:
    tokenizer = word_tokenizer()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"texts": [], "labels": []}, "empty"),
        ({"texts": "one", "labels": [0]}, "list of texts"),
        ({"texts": ["a", 3], "labels": [0, 0]}, r"texts\[1\] is int"),
        ({"texts": ["a"], "labels": [0, 1]}, "1 texts and 2 labels"),
        ({"texts": ["a"], "labels": [0], "pairs": ["b", "c"]}, "1 texts and 2 pairs"),
        ({"texts": ["a"], "labels": [-1]}, "0 or more; got -1"),
        ({"texts": ["a"], "labels": [1.5]}, r"labels\[0\] is 1.5 \(float\)"),
        ({"texts": ["a"], "labels": [0], "batch_size": 0}, "at least 1"),
    ]
    for arguments, message in cases:
        with pytest.raises(UsageError, match=message):
            hc.task("classification", **arguments, tokenizer=tokenizer)
    with pytest.raises(UsageError, match="label 7, the model knows classes 0 to 1"):
        hc.task("classification", texts=["w5"], labels=[7], tokenizer=tokenizer).quality(bert)
    with pytest.raises(UsageError, match="nothing to predict"):
        hc.task("language-modelling", texts=["w5"], tokenizer=tokenizer).quality(zoo.build("gpt2"))
    with pytest.raises(UnknownName, match="classification"):
        hc.task("classifikation")
    assert tasks.names() == (
        "classification", "embedding", "language-modelling", "lm-eval", "masked-language-modelling", "translation",
    )  # fmt: skip


@pytest.mark.parametrize(("architecture", "limit"), [("bert", 64), ("gpt2", 64), ("roberta", 62), ("marian", 64)])
def test_a_text_longer_than_the_positions_of_a_model_is_refused_with_the_limit(architecture: str, limit: int) -> None:
    model, tokenizer, texts = zoo.build(architecture), word_tokenizer(mask="w4"), [" ".join(["w5"] * (limit + 6))]
    data: dict[str, Any] = {"texts": texts}
    name = {"bert": "classification", "marian": "translation", "roberta": "masked-language-modelling"}.get(
        architecture, "language-modelling"
    )
    data = {"source": texts, "target": texts} if name == "translation" else data
    data |= {"labels": [0]} if name == "classification" else {}
    options = {"metric": "loss"} if name == "translation" else {}
    with pytest.raises(UsageError, match=rf"{limit + 6} tokens.*positions for {limit}.*max_length={limit}"):
        hc.task(name, **data, tokenizer=tokenizer, **options).quality(model)
    assert np.isfinite(hc.task(name, **data, tokenizer=tokenizer, max_length=limit, **options).quality(model).value)
    rotary = zoo.build("llama")
    assert np.isfinite(hc.task("language-modelling", texts=texts, tokenizer=tokenizer).quality(rotary).value)


def test_a_loss_that_knows_its_own_batches_only_is_taken() -> None:
    """Whether a loss compares examples with each other is tried on a batch that the user never made."""
    batches = [{"input_ids": torch.tensor([[5, 6, 7]])}]

    def nll(model: nn.Module, batch: Any) -> torch.Tensor:
        next(other for other in batches if other is batch)  # StopIteration
        return model(**batch).last_hidden_state.flatten(1).sum(-1)

    assert not hc.task.of(batches, nll=nll).separate(zoo.build("bert").base_model)
