"""Checkpoints: what is written, what is refused, and that nothing is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from behaviour import identical, outputs, weights
from headcount.checkpoints.stock import is_stock
from headcount.errors import CheckpointError, UnknownName, UsageError


@pytest.fixture
def folder(bert: nn.Module, tmp_path: Path) -> Path:
    return hc.save(hc.remove(bert, hc.locate(bert).mask(off=["encoder.0.1", "encoder.1.*"])), tmp_path / "small")


def edit(folder: Path, change: Any) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def test_plain_models_round_trip(bert: nn.Module, tmp_path: Path) -> None:
    found = hc.load(hc.save(bert, tmp_path / "m"))
    assert type(found) is type(bert)
    assert identical(weights(found), weights(bert))
    assert not found.training


def test_tasks_choose_the_head(bert: nn.Module, tmp_path: Path) -> None:
    hc.save(bert, tmp_path / "m")
    assert type(hc.load(tmp_path / "m", task="classification")) is tf.BertForSequenceClassification
    with pytest.raises(UnknownName, match="Did you mean 'translation'"):
        hc.load(tmp_path / "m", task="translatio")
    with pytest.raises(CheckpointError, match="bert model"):
        hc.load(tmp_path / "m", task="translation")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, "float32"])
def test_number_formats_and_device_map(folder: Path, dtype: Any) -> None:
    found = hc.load(folder, dtype=dtype, device_map="cpu")
    assert {p.dtype for p in found.parameters()} == {getattr(torch, dtype) if isinstance(dtype, str) else dtype}
    assert hc.locate(found)[0].heads == (0, 2, 3)


def test_shards(llama: nn.Module, tmp_path: Path) -> None:
    small = hc.remove(llama, hc.locate(llama).mask(off=["decoder.0.2", "decoder.1.*"]))
    hc.save(small, tmp_path / "m", max_shard_size="100KB")
    assert len(list((tmp_path / "m").glob("*.safetensors"))) > 1
    assert identical(weights(hc.load(tmp_path / "m")), weights(small))


def test_tied_weights_stay_tied(tmp_path: Path) -> None:
    gpt2 = zoo.build("gpt2")
    found = hc.load(hc.save(hc.remove(gpt2, hc.locate(gpt2).mask(off="decoder.1.*")), tmp_path / "m"))
    assert found.lm_head.weight is found.transformer.wte.weight


def test_save_needs_leave_to_overwrite(bert: nn.Module, folder: Path) -> None:
    with pytest.raises(CheckpointError, match="not empty"):
        hc.save(bert, folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "tokenizer.json").write_text("{}")
    hc.save(bert, folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "tokenizer.json").exists()
    assert len(hc.locate(hc.load(folder)).heads) == 12


def test_save_does_not_touch_other_folders(bert: nn.Module, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat").write_text("cat")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        hc.save(bert, tmp_path / "photos", overwrite=True)
    with pytest.raises(CheckpointError, match="is a file"):
        hc.save(bert, tmp_path / "photos" / "cat", overwrite=True)
    with pytest.raises(UsageError, match="Hugging Face"):
        hc.save(nn.Linear(2, 2), tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_config_without_weights_is_not_a_checkpoint(bert: nn.Module, tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "config.json").write_text('{"lr": 1}')
    (tmp_path / "vocab.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        hc.save(bert, tmp_path, overwrite=overwrite)
    assert (tmp_path / "config.json").read_text() == '{"lr": 1}'
    assert (tmp_path / "vocab.txt").is_file()
    (tmp_path / "pytorch_model.bin").write_text("weights")
    if overwrite:
        hc.load(hc.save(bert, tmp_path, overwrite=True))
    else:
        with pytest.raises(CheckpointError, match="pass overwrite=True"):
            hc.save(bert, tmp_path)


@pytest.mark.parametrize("form", ["PeftModel", "its model", "add_adapter"])
def test_a_model_with_adapters_does_not_replace_a_checkpoint(bert: Any, folder: Path, form: str) -> None:
    peft = pytest.importorskip("peft")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    lora = peft.LoraConfig(r=2, target_modules=["query"])
    if form == "add_adapter":
        bert.add_adapter(lora)
    else:
        bert = peft.get_peft_model(bert, lora)
    subject = bert.get_base_model() if form == "its model" else bert
    with pytest.raises(UsageError, match=r"query; .* merge_and_unload\(\)"):
        hc.save(subject, folder, overwrite=True)
    with pytest.raises(UsageError, match=r"merge_and_unload\(\)"):
        hc.export(subject, "vllm", folder, overwrite=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    if form == "PeftModel":
        hc.load(hc.save(bert.merge_and_unload(), folder, overwrite=True))


def test_a_failed_save_leaves_the_old_checkpoint(
    bert: nn.Module, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights(hc.load(folder))

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(type(bert), "save_pretrained", fail)
    with pytest.raises(OSError, match="disk full"):
        hc.save(bert, folder, overwrite=True)
    assert identical(weights(hc.load(folder)), before)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_stock_code_cannot_be_talked_into_random_weights(folder: Path) -> None:
    """An emptied layer keeps its zero-width tensors, so that a stock load fails instead of making weights up."""
    for stock in (tf.AutoModelForSequenceClassification, tf.AutoModel):
        with pytest.raises((RuntimeError, ValueError)):
            stock.from_pretrained(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "config.json").write_text("{"), "not readable JSON"),
        (lambda f: (f / "config.json").write_text("[" * 100_000), "not readable JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "not a JSON object"),
        (lambda f: (f / "config.json").write_bytes(b"\xff\xfe"), "not readable JSON"),
        (lambda f: (f / "model.safetensors").unlink(), "no model.safetensors"),
        (lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:5000]), "Cannot load"),
        (lambda f: (f / "model.safetensors").write_bytes(b"junk"), "Cannot load"),
        (lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../../x.safetensors"}}'), "points to"),
        (lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"a": "y.safetensors"}}'), "is incomplete"),
        (lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": 3}'), "weight_map"),
        (lambda f: edit(f, lambda c: c.update(head_pruning=3)), "not a manifest"),
        (lambda f: edit(f, lambda c: c.update(head_pruning={"version": 99, "sites": {}})), "newer headcount"),
        (lambda f: edit(f, lambda c: c.update(head_pruning={"version": 1, "sites": []})), "no table of sites"),
        (lambda f: edit(f, lambda c: c["head_pruning"]["sites"]["encoder.0"].update(heads=[0, 9])), "keeps heads"),
        (lambda f: edit(f, lambda c: c["head_pruning"]["sites"]["encoder.0"].update(heads=[2, 0])), "keeps heads"),
        (lambda f: edit(f, lambda c: c["head_pruning"]["sites"]["encoder.0"].update(heads="02")), "damaged"),
        (lambda f: edit(f, lambda c: c["head_pruning"]["sites"]["encoder.0"].update(of=True)), "damaged"),
        (lambda f: edit(f, lambda c: c["head_pruning"]["sites"]["encoder.0"].update(kv_of=0)), "cannot be"),
        (lambda f: edit(f, lambda c: c["head_pruning"]["sites"]["encoder.0"].update(heads=[0])), "was changed"),
        (lambda f: edit(f, lambda c: c["head_pruning"]["sites"].pop("encoder.1")), "was changed"),
        (lambda f: edit(f, lambda c: c["head_pruning"]["sites"].update({"decoder.0": c["head_pruning"]["sites"]["encoder.0"]})), "no such site"),
        (lambda f: edit(f, lambda c: c["head_pruning"]["sites"]["encoder.0"].update(of=10**9, kv_of=10**9)), "cannot be"),
        (lambda f: edit(f, lambda c: c.update(num_attention_heads=8)), "are from different models"),
        (lambda f: edit(f, lambda c: c.update(num_hidden_layers=5)), "missing"),
        (lambda f: edit(f, lambda c: c.update(hidden_size="big")), "Cannot load"),
        (lambda f: edit(f, lambda c: c.update(model_type="nonsense")), "Cannot load"),
    ],
)  # fmt: skip
def test_damaged_and_hostile_folders(folder: Path, damage: Any, message: str) -> None:
    damage(folder)
    with pytest.raises(CheckpointError, match=message):
        hc.load(folder)


def test_places_that_are_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for source, message in (
        (tmp_path / "none", "no folder"),
        (tmp_path / "file", "is a file"),
        ("./nowhere", "no folder"),
    ):
        with pytest.raises(CheckpointError, match=message):
            hc.load(source)
    with pytest.raises(CheckpointError, match="Cannot load no-such-user/no-such-model"):
        hc.load("no-such-user/no-such-model")


def test_remote_code_is_not_run_unasked(folder: Path) -> None:
    ran = folder / "ran"
    (folder / "evil.py").write_text(f"open({str(ran)!r}, 'w').write('x')\nclass Evil: pass\n")
    edit(
        folder,
        lambda c: c.update(auto_map={"AutoModelForSequenceClassification": "evil.Evil", "AutoConfig": "evil.Evil"}),
    )
    hc.load(folder)  # a known architecture needs no code of its own
    edit(folder, lambda c: c.update(architectures=["Evil"]))
    with pytest.raises(CheckpointError):
        hc.load(folder)
    assert not ran.exists()


def test_pickles_are_not_read(bert: nn.Module, tmp_path: Path) -> None:
    hc.save(bert, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(CheckpointError, match="convert other formats first"):
        hc.load(tmp_path / "m")


def test_standalone_needs_a_pruned_model(bert: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="No heads were removed"):
        hc.save(bert, tmp_path / "m", standalone=True)
    assert not list(tmp_path.iterdir())


def test_generation_settings_travel(marian: nn.Module, tmp_path: Path) -> None:
    marian.generation_config.num_beams = 3
    marian.generation_config.length_penalty = 0.6
    found = hc.load(hc.save(hc.remove(marian, hc.locate(marian).mask(off="cross.0.0")), tmp_path / "m"))
    assert (found.generation_config.num_beams, found.generation_config.length_penalty) == (3, 0.6)
    assert identical(outputs(found), outputs(hc.remove(marian, hc.locate(marian).mask(off="cross.0.0"))))


def test_a_standalone_llama_states_the_heads_of_each_layer_for_vllm(tmp_path: Path) -> None:
    """vLLM builds the body by AutoModel and reads the numbers of heads from `per_layer_config`."""
    model = zoo.build("llama")
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.1.0", "decoder.1.1"]), verify=False)
    hc.save(small, tmp_path / "half", standalone=True)
    config = json.loads((tmp_path / "half" / "config.json").read_text())
    assert config["per_layer_config"]["1"] == {"num_attention_heads": 2, "num_key_value_heads": 1}
    body = tf.AutoModel.from_pretrained(tmp_path / "half", trust_remote_code=True).eval()
    assert [layer.self_attn.k_proj.out_features // 16 for layer in body.layers] == [2, 1, 2]
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        assert torch.equal(body(ids).last_hidden_state, small.model(ids).last_hidden_state)
    again = hc.load(tmp_path / "half")
    assert torch.equal(again(ids).logits, small(ids).logits)
    hc.save(
        hc.remove(again, hc.locate(again).mask(off=["decoder.2.0", "decoder.2.1"]), verify=False), tmp_path / "less"
    )
    assert "per_layer_config" not in json.loads((tmp_path / "less" / "config.json").read_text())


def test_what_stock_code_loads_is_known(tmp_path: Path) -> None:
    """A model that keeps all heads is a plain one."""
    llama = zoo.build("llama")
    sites = hc.locate(llama)
    for off, expected in (([], True), (["decoder.0.1"], False)):
        small = hc.remove(llama, sites.mask(off=off))
        assert is_stock(small) is expected
        folder = hc.save(small, tmp_path / str(expected))
        if expected:
            assert identical(outputs(tf.LlamaForCausalLM.from_pretrained(folder)), outputs(small))


def test_a_new_model_of_a_pruned_models_config_has_all_heads(bert: nn.Module, tmp_path: Path) -> None:
    small = hc.remove(bert, hc.locate(bert).mask(off=["encoder.0.0", "encoder.1.*"]))
    new = type(bert)(small.config).eval()
    loaded = hc.load(hc.save(new, tmp_path / "new"))
    assert len(hc.locate(loaded).heads) == len(hc.locate(bert).heads)
    assert not hasattr(loaded.config, "head_pruning")
    assert hasattr(small.config, "head_pruning"), "it has this config too"
    assert len(hc.locate(hc.load(hc.save(small, tmp_path / "small"))).heads) == len(hc.locate(small).heads)


@pytest.mark.parametrize("off", [[], ["decoder.0.1"], ["decoder.*.0", "decoder.*.1"]], ids=["plain", "uneven", "stock"])
def test_rules_of_generation_that_contradict_each_other_are_no_reason_to_lose_a_model(
    off: list[str], llama: Any, tmp_path: Path
) -> None:
    small = hc.remove(llama, hc.locate(llama).mask(off=off)) if off else llama
    small.generation_config = tf.GenerationConfig(temperature=0.9, top_p=0.6, max_new_tokens=5)  # as in Llama 2 Chat
    found = hc.load(hc.save(small, tmp_path / "m"))
    assert found.generation_config.temperature == 0.9
    assert found.generation_config.to_diff_dict().keys() >= {"top_p", "max_new_tokens"}
    assert small.generation_config.temperature == 0.9


def test_a_stock_checkpoint_states_the_number_format_of_its_weights(llama: Any, tmp_path: Path) -> None:
    hc.save(llama.bfloat16(), tmp_path / "half")
    whole = hc.load(tmp_path / "half").float()
    with torch.no_grad():
        whole.lm_head.weight += 1e-3
    small = hc.remove(whole, hc.locate(whole).mask(off=["decoder.*.0", "decoder.*.1"]))
    assert is_stock(small)
    assert identical(weights(hc.load(hc.save(small, tmp_path / "small"))), weights(small))
