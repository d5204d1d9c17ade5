"""What a checkpoint lacks is never made up silently, and what is left over in its layers is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file
from torch import nn

import headcount as hc
import zoo
from behaviour import identical, weights
from headcount.errors import CheckpointError, UnknownName

SIZE = {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.fixture
def classifier(bert: nn.Module, tmp_path: Path) -> Path:
    return hc.save(bert, tmp_path / "classifier")


@pytest.mark.parametrize("task", [None, "classification"])
def test_a_missing_classifier_is_refused(classifier: Path, task: str | None) -> None:
    rewrite(classifier, lambda tensors: tensors.pop("classifier.weight"))
    with pytest.raises(CheckpointError, match=r"lacks 1 weight \(classifier.weight\)[^.]*random.*new_weights="):
        hc.load(classifier, task=task)
    assert hc.load(classifier, task=task, new_weights="head")


def test_missing_embeddings_are_new_only_where_any_weight_may_be(classifier: Path) -> None:
    rewrite(classifier, lambda tensors: tensors.pop("bert.embeddings.word_embeddings.weight"))
    for options in ({}, {"classes": ["a", "b"]}, {"new_weights": "head"}):
        with pytest.raises(CheckpointError, match=r"word_embeddings\.weight"):
            hc.load(classifier, **options)
    assert hc.load(classifier, new_weights="any")
    with pytest.raises(UnknownName, match="any, head"):
        hc.load(classifier, new_weights="all")


def test_a_missing_layer_is_refused_whatever_may_be_new(classifier: Path) -> None:
    rewrite(classifier, lambda tensors: tensors.pop("bert.encoder.layer.1.output.dense.weight"))
    with pytest.raises(CheckpointError, match="damaged: 1 weight missing"):
        hc.load(classifier, new_weights="any")


def test_a_body_needs_a_new_head_to_be_asked_for(tmp_path: Path) -> None:
    tf.BertModel(tf.BertConfig(**SIZE)).save_pretrained(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"classifier.*saved from BertModel. Fine-tune it first \(headcount train \S+ --task"
    ):
        hc.load(tmp_path, task="classification")
    assert hc.load(tmp_path, task="classification", new_weights="head")
    assert hc.load(tmp_path, task="classification", classes=["a", "b", "c"]).classifier.out_features == 3


@pytest.mark.parametrize("architectures", [["BertModel"], None])
def test_a_body_without_pooler_gets_none(architectures: list[str] | None, tmp_path: Path) -> None:
    body = tf.BertModel(tf.BertConfig(**SIZE), add_pooling_layer=False)
    body.save_pretrained(tmp_path)
    edit_config(tmp_path, architectures=architectures)
    model = hc.load(tmp_path)
    assert model.pooler is None
    assert identical(weights(model), weights(body))


def test_a_pruned_body_without_pooler_gets_none(tmp_path: Path) -> None:
    body = tf.BertModel(tf.BertConfig(**SIZE), add_pooling_layer=False).eval()
    small = hc.remove(body, hc.locate(body).mask(off="encoder.0.1"))
    assert hc.load(hc.save(small, tmp_path / "m")).pooler is None


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("gpt2", ()),  # lm_head is tied to the embedding
        ("marian", ("final_logits_bias",)),
        ("wav2vec2", ("wav2vec2.masked_spec_embed",)),
    ],
)
def test_weights_that_may_be_absent(architecture: str, names: tuple[str, ...], tmp_path: Path) -> None:
    model = zoo.build(architecture)
    hc.save(model, tmp_path / "m")
    rewrite(tmp_path / "m", lambda tensors: [tensors.pop(name) for name in names])
    assert hc.load(tmp_path / "m")


def test_a_body_with_tied_embeddings_is_a_language_model(tmp_path: Path) -> None:
    tf.LlamaModel(tf.LlamaConfig(**SIZE, tie_word_embeddings=True)).save_pretrained(tmp_path)
    model = hc.load(tmp_path, task="language-modelling")
    assert model.lm_head.weight is model.model.embed_tokens.weight


@pytest.mark.parametrize(
    ("architecture", "change"),
    [
        ("bert", {"num_hidden_layers": 2}),
        ("gpt2", {"n_layer": 2}),
        ("t5", {"num_decoder_layers": 2}),
        ("marian", {"encoder_layers": 2}),
    ],
)
def test_layers_that_the_config_lacks_are_refused(architecture: str, change: dict[str, int], tmp_path: Path) -> None:
    hc.save(zoo.build(architecture), tmp_path / "m")
    edit_config(tmp_path / "m", **change)
    with pytest.raises(CheckpointError, match=r"weights left over .* are from different models"):
        hc.load(tmp_path / "m")


def test_layers_of_a_body_that_the_config_lacks_are_refused(tmp_path: Path) -> None:
    """The files of a body name its layers without the prefix that a classifier gives them."""
    tf.BertModel(tf.BertConfig(**SIZE)).save_pretrained(tmp_path)
    edit_config(tmp_path, num_hidden_layers=1)
    with pytest.raises(CheckpointError, match="16 weights left over"):
        hc.load(tmp_path, task="classification", classes=["a", "b"])


def test_left_over_weights_outside_the_layers_and_old_constants_are_ignored(tmp_path: Path) -> None:
    hc.save(zoo.build("gpt_neo"), tmp_path / "m")
    old = {
        "transformer.h.0.attn.attention.bias": torch.ones(1),
        "transformer.h.0.attn.attention.masked_bias": torch.ones(1),
        "value_head.weight": torch.ones(1),
    }
    rewrite(tmp_path / "m", lambda tensors: tensors.update(old))
    assert hc.load(tmp_path / "m")
    rewrite(tmp_path / "m", lambda tensors: tensors.update({"transformer.h.0.adapter.weight": torch.ones(1)}))
    with pytest.raises(CheckpointError, match=r"adapter\.weight"):
        hc.load(tmp_path / "m")
