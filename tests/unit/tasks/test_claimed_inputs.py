"""Work in a folder goes on with the tokenizer and the configuration it was begun with, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import headcount as hc
import zoo
from headcount.errors import UsageError
from headcount.scores.pieces import shelf
from headcount.sites.fingerprint import config_hash, weight_hash
from headcount.tasks.inputs import claim_inputs
from headcount.tasks.task import token_hash
from tokens import sentences, word_tokenizer


def test_another_activation_is_another_configuration(tmp_path: Path) -> None:
    """The weights are the same, the numbers are not."""
    model, other = zoo.build("bert"), zoo.build("bert")
    other.load_state_dict(model.state_dict())
    other.config.hidden_act = "relu"
    assert weight_hash(model) == weight_hash(other)
    assert config_hash(model) != config_hash(other)
    task = hc.task("language-modelling", texts=sentences(4), tokenizer=word_tokenizer())
    claim_inputs(tmp_path, model, task)
    claim_inputs(tmp_path, model, task)
    with pytest.raises(UsageError, match="begun with other settings"):
        claim_inputs(tmp_path, other, task)


def test_how_a_model_was_loaded_is_no_part_of_its_configuration(tmp_path: Path) -> None:
    model = zoo.build("bert")
    model.save_pretrained(tmp_path / "model")
    again = type(model).from_pretrained(tmp_path / "model", dtype=torch.float32, attn_implementation="eager")
    assert config_hash(model) == config_hash(again)
    assert config_hash(torch.nn.Linear(1, 1)) == ""


def test_other_rules_of_generation_are_another_configuration_of_written_texts(tmp_path: Path) -> None:
    """They change texts, and no loss. Rules that follow from the configuration do not change its hash."""
    model, other = zoo.build("marian"), zoo.build("marian")
    other.generation_config.suppress_tokens = [5, 6]
    assert config_hash(model, writes=True) == config_hash(model) == config_hash(other)
    assert config_hash(other, writes=True) != config_hash(other)
    model.save_pretrained(tmp_path / "model")
    again = type(model).from_pretrained(tmp_path / "model")
    assert config_hash(again, writes=True) == config_hash(model, writes=True)
    texts = sentences(8)
    losses = hc.task("language-modelling", texts=texts, tokenizer=word_tokenizer())
    written = hc.task("translation", source=texts, target=texts, tokenizer=word_tokenizer())
    for task, folder in ((losses, tmp_path / "losses"), (written, tmp_path / "written")):
        claim_inputs(folder, model, task)
        shelf(folder, model, task, {})
    claim_inputs(tmp_path / "losses", other, losses)
    with pytest.raises(UsageError, match="begun with other settings"):
        claim_inputs(tmp_path / "written", other, written)
    with pytest.raises(UsageError, match="begun with other settings"):
        shelf(tmp_path / "written", other, written, {})


@pytest.mark.parametrize("name", ["language-modelling", "classification"])
def test_the_size_of_batches_is_no_other_tokenizer(name: str) -> None:
    """A smaller batch, after a run out of memory, was refused as other tokens."""
    labels = {"labels": [0, 1] * 10} if name == "classification" else {}
    hashes = [
        token_hash(hc.task(name, texts=sentences(20), tokenizer=word_tokenizer(99), batch_size=size, **labels))
        for size in (2, 16)
    ]
    assert hashes[0] == hashes[1]
