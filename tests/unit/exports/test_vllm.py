"""The folder for vLLM: transformers loads it with its own class, and it computes what the pruned model computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

import headcount as hc
import zoo
from headcount.errors import CheckpointError, NotExportable
from tokens import word_tokenizer

UNEVEN = ["decoder.1.*", "decoder.2.0"]  # an empty layer, a broken group


def pruned(architecture: str, off: list[str], **options: Any) -> Any:
    model = zoo.build(architecture)
    return hc.remove(model, hc.locate(model).mask(off=off), verify=False, **options)


@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen2", "qwen3"])
def test_transformers_loads_the_folder_with_its_own_class(architecture: str, tmp_path: Path) -> None:
    small = pruned(architecture, UNEVEN)
    done = hc.export(small, "vllm", tmp_path / "half", tokenizer=word_tokenizer())
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4
    assert done.agreement.same_tokens == done.agreement.tokens
    body = AutoModel.from_pretrained(tmp_path / "half", trust_remote_code=True)
    assert [layer.self_attn.q_proj.out_features // 16 for layer in body.layers] == [4, 1, 3]
    config = json.loads((tmp_path / "half" / "config.json").read_text())
    assert config["per_layer_config"]["2"] == {"num_attention_heads": 3, "num_key_value_heads": 3}
    assert set(config["auto_map"]) == {"AutoModel", "AutoModelForCausalLM"}
    assert "head_pruning" not in config
    assert any("zeros" in note for note in done.notes)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_tied_embeddings_are_written_once(dtype: str, tmp_path: Path) -> None:
    model = zoo.build("llama")
    model.config.tie_word_embeddings = True
    model.tie_weights()
    hc.export(model, "vllm", tmp_path / "whole", dtype=dtype)
    weights = load_file(tmp_path / "whole" / "model.safetensors")
    assert sum(tensor.numel() for tensor in weights.values()) == sum(weight.numel() for weight in model.parameters())
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "whole")
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight


def test_it_writes_the_same_text(tmp_path: Path) -> None:
    small = pruned("llama", ["decoder.1.0", "decoder.1.1"])
    hc.export(small, "vllm", tmp_path / "half", check=False)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "half", trust_remote_code=True).eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    ours, theirs = (model.generate(ids, max_new_tokens=8, do_sample=False) for model in (small, loaded))
    assert torch.equal(ours, theirs)


def test_without_a_task_its_code_gives_the_model_that_was_saved_and_not_its_body(tmp_path: Path) -> None:
    small = pruned("llama", ["decoder.1.0", "decoder.1.1"])
    hc.export(small, "vllm", tmp_path / "half", check=False)
    loaded = hc.load(tmp_path / "half", trust_remote_code=True)
    assert type(loaded).__name__ == "PrunedLlamaForCausalLM"
    assert hc.cost(loaded).parameters == hc.cost(small).parameters
    assert hc.cost(loaded).flops == hc.cost(small).flops
    again = hc.remove(loaded, hc.locate(loaded).mask(off=["decoder.0.0"]))
    hc.save(again, tmp_path / "again")
    assert "lm_head.weight" in load_file(tmp_path / "again" / "model.safetensors")


@pytest.mark.parametrize("task", [None, "language-modelling"])
def test_headcount_loads_the_folder_with_its_code_when_that_is_trusted(task: str | None, tmp_path: Path) -> None:
    small = pruned("llama", ["decoder.1.0", "decoder.1.1"])
    hc.export(small, "vllm", tmp_path / "half", check=False)
    with pytest.raises(CheckpointError, match=r"needs custom code .* trust_remote_code=True \(--trust-remote-code\)"):
        hc.load(tmp_path / "half", task=task)
    loaded = hc.load(tmp_path / "half", task="language-modelling", trust_remote_code=True)
    ids = torch.tensor([[5, 6, 7, 8]])
    assert torch.allclose(loaded(ids).logits, small(ids).logits, atol=1e-5)


def test_a_bias_of_compensation_is_part_of_its_layer(tmp_path: Path) -> None:
    task = hc.task("language-modelling", texts=["w5 w6 w7 w8"] * 4, tokenizer=word_tokenizer(), batch_size=2)
    small = pruned("llama", UNEVEN, compensate="bias", task=task, add_bias=True)
    done = hc.export(small, "vllm", tmp_path / "half", tokenizer=word_tokenizer())
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4


def test_a_model_that_is_alike_in_all_layers_needs_no_code(tmp_path: Path) -> None:
    small = pruned("llama", ["decoder.*.2", "decoder.*.3"])
    hc.export(small, "vllm", tmp_path / "half")
    assert not list((tmp_path / "half").glob("*.py"))
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "half").config.num_key_value_heads == 1


def test_a_number_of_heads_that_the_config_refuses_needs_code(tmp_path: Path) -> None:
    """LlamaConfig wants heads to divide the width, also where their size is given."""
    sizes = {"hidden_size": 24, "intermediate_size": 16, "vocab_size": 16, "num_hidden_layers": 2, "head_dim": 4}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=6, num_key_value_heads=6)).eval()
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.*.2"]))
    done = hc.export(small, "vllm", tmp_path / "most")
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4
    assert any("trust_remote_code=True" in note for note in done.notes)


def test_other_classes_are_refused_with_what_takes_them(tmp_path: Path) -> None:
    with pytest.raises(NotExportable, match="GPT2LMHeadModel is not among"):
        hc.export(zoo.build("gpt2"), "vllm", tmp_path / "half")
