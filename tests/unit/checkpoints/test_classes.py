"""Which class a checkpoint is loaded as: a task that it was not saved for is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import transformers as tf

import headcount as hc
import zoo
from headcount.checkpoints.classes import automatic_classes
from headcount.errors import CheckpointError


@pytest.mark.parametrize(
    ("architecture", "task", "message"),
    [
        ("bert", "language-modelling", "BertForSequenceClassification, which is for classification"),
        ("llama", "classification", "LlamaForCausalLM, which is for language-modelling"),
        ("roberta", "classification", "RobertaForMaskedLM, which is for masked-language-modelling"),
        ("roberta", "language-modelling", "RobertaForMaskedLM, which is for masked-language-modelling"),
        ("electra", "classification", "ElectraForTokenClassification, which is for token classification"),
        ("bart", "language-modelling", "BartForConditionalGeneration, which is for translation"),
        ("llama", "translation", "none of that type for translation. Give a model for translation"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(architecture: str, task: str, message: str, tmp_path: Path) -> None:
    hc.save(zoo.build(architecture), tmp_path / "m")
    with pytest.raises(CheckpointError, match=message):
        hc.load(tmp_path / "m", task=task)


def test_an_encoder_without_its_decoder_is_not_damaged(tmp_path: Path) -> None:
    """sentence-t5 was saved from T5EncoderModel; embeddings need no decoder."""
    config = tf.T5Config(d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=2, vocab_size=16)
    hc.save(tf.T5EncoderModel(config), tmp_path / "m")
    assert type(hc.load(tmp_path / "m", task="embedding")) is tf.T5EncoderModel


@pytest.mark.parametrize(
    ("architecture", "task"), [("bert", "classification"), ("gpt2", "language-modelling"), ("marian", "translation")]
)
def test_a_task_that_fits_is_the_saved_class(architecture: str, task: str, tmp_path: Path) -> None:
    model = zoo.build(architecture)
    assert type(hc.load(hc.save(model, tmp_path / "m"), task=task)) is type(model)


def test_an_encoder_is_no_language_model(tmp_path: Path) -> None:
    """All its weights are there, and it would see every token that it predicts."""
    config = tf.BertConfig(
        vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    tf.BertLMHeadModel(config).save_pretrained(tmp_path / "encoder")
    with pytest.raises(CheckpointError, match="both directions"):
        hc.load(tmp_path / "encoder", task="language-modelling")
    config.is_decoder = True
    tf.BertLMHeadModel(config).save_pretrained(tmp_path / "decoder")
    assert hc.load(tmp_path / "decoder", task="language-modelling")


def test_automatic_classes_of_a_class() -> None:
    assert "AutoModelForCausalLM" in automatic_classes(tf.GPT2Config, "GPT2LMHeadModel")
    assert automatic_classes(tf.GPT2Config, "BertModel") == []
