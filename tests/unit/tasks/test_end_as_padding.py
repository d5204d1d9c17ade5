"""Tokenizers that pad with their end token: the end of a text is read, and it is predicted. Padding is neither."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import headcount as hc
import laboratory
from headcount.studies.evaluation import translate
from headcount.tasks.translation.decoding import LENGTH_PENALTY


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    padding_with_end = copy.deepcopy(laboratory.vocabulary(tmp_path_factory.mktemp("vocabulary") / "v"))
    padding_with_end.pad_token = padding_with_end.eos_token
    return padding_with_end


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    """Untrained, but what it writes depends on the end of the source: the queries of cross-attention are large."""
    model = laboratory.model(tokenizer)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "encoder_attn" in name or "self_attn" in name:
                weight *= 4
    return model


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], list[str]]:
    dev = laboratory.parallel()["dev"]
    return list(dev["source"])[:12], list(dev["target"])[:12]


def make(tokenizer: Any, texts: tuple[list[str], list[str]], **options: Any) -> Any:
    return hc.task("translation", source=texts[0], target=texts[1], tokenizer=tokenizer, **options)


def test_the_loss_is_that_of_single_sentences(tokenizer: Any, model: Any, texts: Any) -> None:
    """With the tokenizer's own mask, and with the end token among the labels."""
    task = make(tokenizer, texts, metric="loss")
    expected = []
    for source, target in zip(*texts, strict=True):
        labels = tokenizer(text_target=target)["input_ids"]
        assert labels[-1] == tokenizer.pad_token_id == tokenizer.eos_token_id
        before = torch.tensor([[model.config.decoder_start_token_id, *labels[:-1]]])
        with torch.no_grad():
            scores = model(**tokenizer([source], return_tensors="pt"), decoder_input_ids=before).logits[0]
        log_probabilities = scores.log_softmax(-1)
        expected.append(
            [-sum(float(log_probabilities[place, token]) for place, token in enumerate(labels)), len(labels)]
        )
    np.testing.assert_allclose(task.quality(model).statistics, expected, rtol=1e-4)
    tokens = sum(count for _, count in expected)
    assert task.targets(np.arange(len(task))) == tokens
    assert task.held_out(model)["loss"] == pytest.approx(sum(nll for nll, _ in expected) / tokens, rel=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
def test_translations_are_those_of_single_sentences(tokenizer: Any, model: Any, texts: Any, beams: int) -> None:
    ids = [_alone(model, tokenizer, text, beams) for text in texts[0]]
    expected = tokenizer.batch_decode(ids, skip_special_tokens=True)
    assert make(tokenizer, texts, beams=beams).translations(model) == expected
    assert translate(model, tokenizer, texts[0], beams=beams) == expected


def _alone(model: Any, tokenizer: Any, text: str, beams: int = 1) -> list[int]:
    """The output for a sentence in no batch, with the tokenizer's own mask and its own limit."""
    inputs = tokenizer([text], return_tensors="pt")
    beam = {"num_beams": beams, **({"length_penalty": LENGTH_PENALTY} if beams > 1 else {})}
    most = 2 * inputs["input_ids"].shape[1] + 10
    written = model.generate(**inputs, do_sample=False, max_length=None, max_new_tokens=most, **beam)
    return [int(token) for token in written[0, 1:]]  # without the start token


@pytest.mark.parametrize("runs", [0, 100], ids=["step by step", "checked"])
def test_drafts_become_what_is_written(tokenizer: Any, model: Any, texts: Any, runs: int) -> None:
    """Up to the limit of each sentence, which counts its end token."""
    task = make(tokenizer, texts)
    rows = np.arange(len(task))
    written = [_alone(model, tokenizer, text) for text in texts[0]]
    drafts = task.drafted(model, rows, [[5, 6, 7]] * len(rows))
    drafts.improve(model)
    for _ in range(runs):
        if len(drafts.pending_P):
            drafts.improve(model)
    drafts.finish(model)
    assert drafts.outputs == written
    assert any(len(ids) == 2 * length + 10 for ids, length in zip(written, task.lengths[:, 0], strict=True))


def test_a_language_model_predicts_the_end(tokenizer: Any, texts: Any) -> None:
    """The translation tokenizer writes the end token after every text, as some language models do."""
    task = hc.task("language-modelling", texts=texts[0], tokenizer=tokenizer)
    for batch in task.batches():
        lengths_B = batch["attention_mask"].sum(-1)
        last_B = batch["labels"][torch.arange(len(lengths_B)), lengths_B - 1]
        assert (last_B == tokenizer.eos_token_id).all()
        assert ((batch["labels"] == -100) == (batch["attention_mask"] == 0)).all()
        assert int(task.predicted(batch).sum()) == int((lengths_B - 1).sum())
