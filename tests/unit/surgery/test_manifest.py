"""The manifest belongs to its model: training and saving leave it valid, an edited one is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from behaviour import identical, weights
from headcount.errors import CheckpointError


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config = json.loads((folder / "config.json").read_text())
    change(config["head_pruning"])
    (folder / "config.json").write_text(json.dumps(config))


def pruned(model: nn.Module, off: str, folder: Path, **options: Any) -> Path:
    return hc.save(hc.remove(model, hc.locate(model).mask(off=off), verify=False), folder, **options)


@pytest.mark.parametrize("architecture", ["bert", "t5", "bloom"])  # t5 and bloom compute with the numbers of heads
def test_other_heads_of_the_same_number_are_refused(architecture: str, tmp_path: Path) -> None:
    model = zoo.build(architecture)
    site = hc.locate(model)[0].name
    folder = pruned(model, f"{site}.1", tmp_path / "m")
    edit(folder, lambda manifest: manifest["sites"][site].update(heads=[0, 1, 2]))
    with pytest.raises(CheckpointError, match=r"/m: The manifest .* was changed"):
        hc.load(folder)


def test_other_heads_of_a_stock_checkpoint_are_refused(llama: nn.Module, tmp_path: Path) -> None:
    sites = hc.locate(llama)
    mask = sites.mask(off=[head for head in sites.heads if head.index % 2])
    folder = hc.save(hc.remove(llama, mask, verify=False), tmp_path / "m")
    assert tf.LlamaForCausalLM.from_pretrained(folder)
    assert hc.locate(hc.load(folder))[0].heads == (0, 2)
    edit(folder, lambda m: m["sites"]["decoder.0"].update(heads=[0, 3], built=[0, 3]))
    with pytest.raises(CheckpointError, match="was changed"):
        hc.load(folder)


def test_a_manifest_without_its_digest_is_refused(bert: nn.Module, tmp_path: Path) -> None:
    folder = pruned(bert, "encoder.0.1", tmp_path / "m")
    edit(folder, lambda manifest: manifest.pop("digest"))
    with pytest.raises(CheckpointError, match="no digest"):
        hc.load(folder)


def test_manifests_of_earlier_versions_are_read(bert: nn.Module, tmp_path: Path) -> None:
    folder = pruned(bert, "encoder.0.1", tmp_path / "m")
    edit(folder, lambda manifest: (manifest.pop("digest"), manifest.update(version=1)))
    again = hc.save(hc.load(folder), tmp_path / "again")
    assert json.loads((again / "config.json").read_text())["head_pruning"]["digest"]
    assert hc.locate(hc.load(again))[0].heads == (0, 2, 3)


def test_fine_tuning_and_save_pretrained_leave_the_digest_valid(bert: nn.Module, tmp_path: Path) -> None:
    model = hc.load(pruned(bert, "encoder.0.1", tmp_path / "m"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    model.half().save_pretrained(tmp_path / "tuned")
    assert identical(weights(hc.load(tmp_path / "tuned", dtype="float16")), weights(model))
    assert hc.load(tmp_path / "tuned", classes=["a", "b", "c"])  # another head on the same heads


def test_an_edited_plan_of_a_standalone_checkpoint_is_refused(bert: nn.Module, tmp_path: Path) -> None:
    folder = pruned(bert, "encoder.0.1", tmp_path / "m", standalone=True)
    automatic = tf.AutoModelForSequenceClassification
    assert automatic.from_pretrained(folder, trust_remote_code=True)
    edit(folder, lambda manifest: manifest["plan"][0].update(heads=[0, 1, 2]))
    with pytest.raises(ValueError, match="plan of heads"):
        automatic.from_pretrained(folder, trust_remote_code=True)
