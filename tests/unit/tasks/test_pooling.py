"""Embeddings are pooled as the files of a model state."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import transformers as tf

import headcount as hc
from headcount.tasks.pooling import pool, pooling_of
from tokens import word_tokenizer

MASK = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0]])


@pytest.mark.parametrize("pooling", ["mean", "first", "last", "max"])
def test_each_pooling_against_a_loop(pooling: str) -> None:
    states = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pooled = pool(pooling, states, MASK)
    for row, mask in enumerate(MASK):
        real = [states[row, token] for token in range(4) if mask[token]]
        stacked = torch.stack(real)
        expected = {"mean": stacked.mean(0), "first": real[0], "last": real[-1], "max": stacked.max(0).values}[pooling]
        torch.testing.assert_close(pooled[row], expected)


@pytest.mark.parametrize(
    ("settings", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "first"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode": "cls"}, "first"),
    ],
)
def test_the_pooling_of_a_folder(tmp_path: Path, settings: dict[str, object], pooling: str) -> None:
    assert pooling_of(_saved(tmp_path, settings)) == pooling


def test_other_poolings_are_warned_of(tmp_path: Path) -> None:
    model = _saved(tmp_path, {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True})
    with pytest.warns(UserWarning, match="pools its tokens in a way that headcount does not support"):
        assert pooling_of(model) == "mean"


def test_modules_after_pooling_are_warned_of(tmp_path: Path) -> None:
    """A Dense layer, as in LaBSE and sentence-t5, makes other embeddings. It was left out without a word."""
    kinds = ["models.Transformer", "models.Pooling", "models.Dense", "models.Normalize"]
    model = _saved(tmp_path, {"pooling_mode_cls_token": True}, kinds)
    with pytest.warns(UserWarning, match=r"has further modules \(Dense\), which headcount does not run"):
        assert pooling_of(model) == "first"


def test_texts_that_the_model_reads_changed_are_warned_of(tmp_path: Path) -> None:
    """A prompt before every text, or lower case, makes other embeddings. Both were left out without a word."""
    model = _saved(tmp_path, {"pooling_mode_cls_token": True})
    prompts = {"prompts": {"query": "query: ", "plain": ""}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"do_lower_case": True}))
    with pytest.warns(UserWarning, match="reads texts changed by the prompt 'query: ' and lower case"):
        assert pooling_of(model) == "first"


def test_normalised_embeddings_are_not_warned_of(tmp_path: Path) -> None:
    model = _saved(
        tmp_path, {"pooling_mode_cls_token": True}, ["models.Transformer", "models.Pooling", "models.Normalize"]
    )
    (tmp_path / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {}, "default_prompt_name": None})
    )
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"do_lower_case": False}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pooling_of(model) == "first"


def test_distances_are_those_of_the_embeddings_of_the_model(tmp_path: Path) -> None:
    """The first token of each text, as in BGE: the mean over tokens gave other distances and another order of heads."""
    model = _saved(tmp_path, {"pooling_mode_cls_token": True})
    tokenizer, texts = word_tokenizer(), ["w3 w4 w5", "w6 w7", "w8 w3 w9 w5 w4"]
    task = hc.task("embedding", texts=texts, tokenizer=tokenizer, model=model, batch_size=2)
    mask = hc.locate(model).mask(off=["encoder.0.1"])

    def embedding(text: str) -> torch.Tensor:
        with torch.no_grad():
            return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0].double()

    whole = [embedding(text) for text in texts]
    with hc.masked(model, mask):
        distance = task.quality(model).value
        pruned = [embedding(text) for text in texts]
    expected = [1 - torch.cosine_similarity(one, other, dim=0) for one, other in zip(whole, pruned, strict=True)]
    assert distance == pytest.approx(float(torch.stack(expected).mean()), rel=1e-5)


@pytest.mark.parametrize("max_length", [None, 3, 5])
def test_texts_are_as_long_as_the_files_of_the_model_state(tmp_path: Path, max_length: int | None) -> None:
    """Sentence Transformers reads no further: later tokens gave other distances."""
    model = _saved(tmp_path, {"pooling_mode_mean_tokens": True})
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 4}))
    texts = ["w3 w4 w5 w6 w7 w8 w9", "w6 w7"]
    task = hc.task("embedding", texts=texts, tokenizer=word_tokenizer(), model=model, max_length=max_length)
    assert task.batch([0])["input_ids"].shape[1] == min(4, max_length or 4)


def _saved(
    folder: Path, settings: dict[str, object], kinds: Sequence[str] = ("models.Transformer", "models.Pooling")
) -> tf.BertModel:
    """A model with the files of Sentence Transformers."""
    torch.manual_seed(0)
    config = tf.BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=32, initializer_range=0.3,
    )  # fmt: skip
    tf.BertModel(config).save_pretrained(folder)
    modules = [{"path": f"{row}_{kind[7:]}" if row else "", "type": kind} for row, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **settings}))
    return tf.BertModel.from_pretrained(folder).eval()
