"""Masked language modelling: losses against a loop over single examples, and what corruption depends on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headcount as hc
import zoo
from headcount.errors import UsageError
from tokens import sentences, word_tokenizer

TEXTS = sentences(11)
MASK = "w98"


def task(texts: list[str] = TEXTS, *, left: bool = False, **options: Any) -> Any:
    tokenizer = word_tokenizer(left=left, mask=MASK, framed=True)
    return hc.task("masked-language-modelling", texts=texts, tokenizer=tokenizer, **options)


def corrupted(data: Any) -> list[tuple[list[int], list[int]]]:
    """Ids and labels of each text, without padding."""
    found = []
    for batch in data.batches():
        for ids, labels, mask in zip(batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True):
            found.append((ids[mask.bool()].tolist(), labels[mask.bool()].tolist()))
    return found


@pytest.fixture
def roberta() -> nn.Module:
    return zoo.build("roberta")


def test_it_is_a_loop_over_corrupted_tokens(roberta: nn.Module) -> None:
    data = task(batch_size=4)
    expected, right, counts = [], [], []
    with torch.no_grad():
        for ids, labels in corrupted(data):
            scores = roberta(torch.tensor([ids])).logits[0].log_softmax(-1)
            places = [place for place, label in enumerate(labels) if label != -100]
            expected.append(-sum(float(scores[place, labels[place]]) for place in places))
            right.append(sum(int(scores[place].argmax()) == labels[place] for place in places))
            counts.append(len(places))
    nll = torch.cat([data.nll(roberta, batch) for batch in data.batches()]).detach()
    torch.testing.assert_close(nll, torch.tensor(expected), rtol=0, atol=1e-3)
    quality = data.quality(roberta)
    assert quality.statistics[:, 1].tolist() == counts
    assert quality.value == pytest.approx(math.exp(sum(expected) / sum(counts)), rel=1e-4)
    accuracy = task(metric="accuracy").quality(roberta)
    assert accuracy.statistics[:, 0].tolist() == right
    held_out = data.held_out(roberta)
    assert held_out["loss"] == pytest.approx(math.log(quality.value), rel=1e-5)
    assert held_out["accuracy"] == pytest.approx(accuracy.value)


def test_corruption_depends_on_the_text_and_the_seed_alone() -> None:
    alone = corrupted(task(batch_size=1))
    assert corrupted(task(batch_size=16)) == alone
    assert corrupted(task(TEXTS[::-1]))[::-1] == alone
    assert corrupted(task(left=True)) == alone
    assert corrupted(task(seed=1)) != alone


def test_the_loss_does_not_depend_on_the_batch(roberta: nn.Module) -> None:
    one, many = (
        torch.cat([data.nll(roberta, batch) for batch in data.batches()])
        for data in (task(batch_size=1), task(batch_size=16))
    )
    torch.testing.assert_close(one, many, rtol=0, atol=1e-4)


def test_tokens_are_corrupted_as_devlin_et_al_say() -> None:
    texts = sentences(400, shortest=40, longest=40)
    tokenizer = word_tokenizer(mask=MASK, framed=True)
    originals = tokenizer(texts)["input_ids"]
    kinds: dict[str, int] = {"masked": 0, "random": 0, "same": 0}
    for (ids, labels), original in zip(corrupted(task(texts)), originals, strict=True):
        plain = [place for place, token in enumerate(original) if token not in tokenizer.all_special_ids]
        chosen = [place for place, label in enumerate(labels) if label != -100]
        assert set(chosen) <= set(plain)
        assert len(chosen) == round(0.15 * len(plain))
        for place, token in enumerate(original):
            if place not in chosen:
                assert ids[place] == token
                continue
            assert labels[place] == token
            kind = "same" if ids[place] == token else "masked" if ids[place] == tokenizer.mask_token_id else "random"
            kinds[kind] += 1
            assert kind == "masked" or ids[place] not in tokenizer.all_special_ids
    shares = np.array([kinds["masked"], kinds["random"], kinds["same"]]) / sum(kinds.values())
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.03)


def test_the_loss_to_train_on_is_a_mean_over_corrupted_tokens(roberta: nn.Module) -> None:
    data = task()
    rows = [0, 3, 5]
    batch = data.batch(rows)
    torch.testing.assert_close(data.loss_sum(roberta, batch) / data.targets(rows), data.loss(roberta, batch))


def test_heads_can_be_scored_and_masked(roberta: nn.Module) -> None:
    data = task(metric="loss", batch_size=4)
    slow, fast = (hc.score("ablation", roberta, data, fast=fast).numbers() for fast in (False, True))
    np.testing.assert_allclose(fast, slow, atol=1e-5)
    assert min(hc.score("gradient", roberta, data).numbers()) > 0


def test_a_short_text_has_one_corrupted_token(roberta: nn.Module) -> None:
    assert task(["w5"]).quality(roberta).statistics[:, 1].tolist() == [1]
    with pytest.raises(UsageError, match="special tokens only"):
        task([""]).quality(roberta)


def test_a_tokenizer_without_a_mask_token_is_refused() -> None:
    with pytest.raises(UsageError, match="no mask token"):
        hc.task("masked-language-modelling", texts=TEXTS, tokenizer=word_tokenizer())


def test_it_is_loaded_with_its_head(roberta: Any, tmp_path: Path) -> None:
    roberta.save_pretrained(tmp_path)
    assert type(hc.load(tmp_path, task="masked-language-modelling")).__name__ == "RobertaForMaskedLM"
    assert type(hc.load(tmp_path, task="embedding")).__name__ == "RobertaModel"


def test_texts_of_different_lengths_on_a_model_with_encoder_and_decoder() -> None:
    """Its labels are those of its source: a text that is run alone is as long as they are."""
    marks = word_tokenizer(framed=True, mask="w98")
    texts = sentences(12, longest=20)
    batched, alone = (
        hc.task("masked-language-modelling", texts=texts, tokenizer=marks, batch_size=size, metric="loss")
        for size in (6, 1)
    )
    bart = zoo.build("bart")
    assert batched.quality(bart).value == pytest.approx(alone.quality(bart).value, rel=1e-5)
