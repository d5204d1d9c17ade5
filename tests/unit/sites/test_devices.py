"""Where inputs go: models spread over memory and disk run like any other, and one without weights says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import accelerate
import pytest
import torch
from torch import nn

import headcount as hc
import zoo
from headcount.checkpoints.loading import Loading, default_device
from headcount.errors import CheckpointError, ModelError, NotRemovable, UsageError
from headcount.sites.devices import compute_device, input_device
from headcount.sites.fingerprint import weight_hash
from headcount.sites.running import evaluating
from tokens import sentences, word_tokenizer

OFFLOADED = '{"bert.embeddings": "disk", "bert.encoder": "disk", "bert.pooler": "cpu", "classifier": "cpu"}'


def task() -> Any:
    return hc.task("classification", texts=sentences(6, seed=1), labels=[0, 1] * 3, tokenizer=word_tokenizer())


@pytest.fixture
def saved(tmp_path: Path) -> str:
    hc.save(zoo.build("bert"), tmp_path / "model", tokenizer=word_tokenizer())
    return str(tmp_path / "model")


def test_a_model_on_the_cpu_is_seeded_there_alone(bert: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generators of graphics cards would keep the seed afterwards."""
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda _: pytest.fail("a graphics card was seeded"))
    before, draws = torch.get_rng_state(), []
    for _ in range(2):
        with evaluating(bert):
            draws.append(float(torch.rand(1)))
    assert draws[0] == draws[1]
    assert torch.equal(torch.get_rng_state(), before)


def test_a_model_on_disk_gives_the_same_numbers(saved: str) -> None:
    whole, offloaded = Loading().load(saved), Loading(device_map=OFFLOADED).load(saved)
    assert next(offloaded.parameters()).is_meta, "its weights are not in memory"
    assert input_device(offloaded) == torch.device("cpu")
    assert weight_hash(offloaded) == weight_hash(whole), "the same weights, wherever they are"
    assert task().quality(offloaded).statistics.tolist() == task().quality(whole).statistics.tolist()
    for name in ("gradient", "ablation", "magnitude"):
        assert list(hc.score(name, offloaded, task()).items()) == list(hc.score(name, whole, task()).items())
    with pytest.raises(NotRemovable, match="without device_map"):
        hc.remove(offloaded, hc.locate(offloaded).mask(off=["encoder.0.1"]))


def test_other_weights_on_disk_have_another_hash(saved: str) -> None:
    before = weight_hash(Loading(device_map=OFFLOADED).load(saved))
    hc.save(zoo.build("bert", seed=5), saved, tokenizer=word_tokenizer(), overwrite=True)
    assert weight_hash(Loading(device_map=OFFLOADED).load(saved)) != before


def test_a_model_without_weights_cannot_run() -> None:
    model = zoo.build("bert").to("meta")
    assert compute_device(model).type == "meta"
    with pytest.raises(ModelError, match=r"on the meta device.*hc\.load"):
        task().quality(model)
    with pytest.raises(ModelError, match="meta device"):
        hc.score("magnitude", model)


def test_where_a_model_goes(saved: str) -> None:
    assert str(Loading().load(saved).device) == default_device()
    assert Loading(device="cpu").load(saved).device == torch.device("cpu")
    with pytest.raises(UsageError, match="device and device_map exclude each other"):
        Loading(device="cpu", device_map="auto")
    with pytest.raises(UsageError, match="not JSON"):
        Loading(device_map="{bert").load(saved)
    with pytest.raises(UsageError, match="cannot be moved to the device 'nowhere'"):
        Loading(device="nowhere").load(saved)


def test_weights_that_accelerate_has_taken_away_are_not_saved(tmp_path: Path) -> None:
    model = zoo.build("gpt2")
    cost = hc.cost(model)
    accelerate.cpu_offload(model)
    assert input_device(model) == torch.device("cpu")
    assert hc.cost(model) == cost, "tied parameters count once"
    with pytest.raises(CheckpointError, match="remove_hook_from_submodules"):
        hc.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    accelerate.hooks.remove_hook_from_submodules(model)
    model.tie_weights()
    loaded = hc.load(hc.save(model, tmp_path / "model"))
    assert weight_hash(loaded) == weight_hash(model)
