"""Export to vLLM and transformers: a folder whose config has the number of heads of each layer, with model code.

vLLM's Transformers backend (`model_impl="transformers"`) reads `per_layer_config`. The Llama classes of transformers do
not read it yet, so the folder contains a subclass that replaces the attention of each layer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from headcount import journal
from headcount.checkpoints.pretrained import save_pretrained
from headcount.checkpoints.stock import is_stock
from headcount.exports.agreement import Agreement, compare_next_tokens, prompts
from headcount.exports.blocks import Block, block, costs, input_heads, output_weight
from headcount.exports.runtime import ExportedModel, Obstacle, Runtime
from headcount.selection.shape import Shape
from headcount.sites.locate import MANIFEST, locate
from headcount.sites.running import evaluating
from headcount.sites.site import Site, Sites

_CLASSES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_MODULE = "modeling_pruned"
_LIKELIEST = 20
_CODE = '''"""{family} with other numbers of heads in each layer. Written by headcount for transformers {version}."""

from torch import nn
from transformers import {family}ForCausalLM, {family}Model


def set_heads(model, config):
    """Give every layer the attention that `config.per_layer_config` states for it."""
    for index, layer in enumerate(model.layers):
        own = config.per_layer_config[index]
        layer.self_attn = type(layer.self_attn)(own, index)
        layer.self_attn.config = config  # the backend is chosen there
        if getattr(own, "output_bias", False):
            output = layer.self_attn.o_proj
            layer.self_attn.o_proj = nn.Linear(output.in_features, output.out_features)


class Pruned{family}Model({family}Model):
    def __init__(self, config):
        super().__init__(config)
        set_heads(self, config)


class Pruned{family}ForCausalLM({family}ForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        set_heads(self.model, config)
'''


class Vllm(Runtime):
    """Export to a folder for vLLM's Transformers backend, checked in transformers."""

    title = "vLLM, transformers"
    types = ("f32", "f16", "bf16")

    def obstacle(self, model: PreTrainedModel) -> Obstacle | None:
        name = type(model).__name__
        if name not in _CLASSES:
            return Obstacle(f"{name} is not among {', '.join(_CLASSES)}", "hc.save(..., standalone=True) is for others")
        return None

    def shape(self, model: PreTrainedModel) -> Shape:
        return Shape(groups="even", at_least=1)  # else key/value heads are repeated, empty layers get a zero head

    def costs(self, subject: ExportedModel) -> list[str]:
        sites = locate(subject.model)
        notes = costs(sites, [block(site, may_be_empty=False) for site in sites])
        if _needs_code(subject.model, sites):
            return [*notes, "brings a class of its own: load it with trust_remote_code=True"]
        return [*notes, "all layers are alike: stock classes load it"]

    def write(self, subject: ExportedModel, target: Path, *, dtype: str) -> None:
        model, sites = subject.model, locate(subject.model)
        kind = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[dtype]
        blocks = [block(site, may_be_empty=False) for site in sites]
        weights = _rounded(model, kind)
        for site, written in zip(sites, blocks, strict=True):
            weights |= {name: tensor.to(kind) for name, tensor in _attention(site, written).items()}
        save_pretrained(model, target, state_dict=weights)
        if subject.tokenizer is not None:
            subject.tokenizer.save_pretrained(target)
        own_code = _needs_code(model, sites)
        _write_config(model, target, list(zip(sites, blocks, strict=True)), str(kind), own_code=own_code)
        if own_code:
            journal.write_text(target / f"{_MODULE}.py", _code(model))

    def check(self, subject: ExportedModel, target: Path) -> Agreement:
        live = AutoModelForCausalLM.from_pretrained(target, trust_remote_code=True, dtype=torch.float32).eval()

        def predict(ids: list[int]) -> dict[int, float]:
            with evaluating(live):
                log_V = torch.log_softmax(live(input_ids=torch.tensor([ids])).logits[0, -1].float(), dim=-1)
            values, places = log_V.topk(min(_LIKELIEST, len(log_V)))
            return dict(zip(places.tolist(), values.tolist(), strict=True))

        starts = prompts(subject.model, subject.tokenizer)
        return compare_next_tokens(
            subject.model, starts, predict, runtime="transformers", version=transformers.__version__
        )


def _rounded(model: PreTrainedModel, kind: torch.dtype) -> dict[str, Tensor]:
    """Return the weights of a model in a number format; tied ones stay one tensor, which is written once."""
    weights = model.state_dict(keep_vars=True)
    rounded = {
        id(tensor): tensor.detach().to(kind) if tensor.is_floating_point() else tensor for tensor in weights.values()
    }
    return {name: rounded[id(tensor)] for name, tensor in weights.items()}


def _attention(site: Site, written: Block) -> dict[str, Tensor]:
    """Return the attention weights of a layer by their names in the state dict."""
    module: Any = site.module
    weights = {f"{site.path}.o_proj.weight": output_weight(site, written).contiguous()}
    for role in ("q", "k", "v"):
        for part, rows in input_heads(getattr(module, f"{role}_proj"), site, written, kv=role != "q").items():
            weights[f"{site.path}.{role}_proj.{part}"] = rows.flatten(0, 1).contiguous()
    return weights


def _needs_code(model: PreTrainedModel, sites: Sites) -> bool:
    """Return whether the classes of transformers cannot build the model, so that the export needs its own code."""
    return not is_stock(model) or any(_has_added_bias(site) for site in sites)


def _has_added_bias(site: Site) -> bool:
    """Return whether the output projection has a bias that its transformers class does not create."""
    module: Any = site.module
    stock = bool(getattr(module.config, "attention_bias", False)) and not type(module).__name__.startswith("Qwen2")
    return module.o_proj.bias is not None and not stock


def _code(model: PreTrainedModel) -> str:
    family = type(model).__name__.removesuffix("ForCausalLM")
    return _CODE.format(family=family, version=transformers.__version__)


def _write_config(
    model: PreTrainedModel, target: Path, layers: list[tuple[Site, Block]], kind: str, *, own_code: bool
) -> None:
    path = target / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config.pop(MANIFEST, None)
    config["dtype"] = kind.removeprefix("torch.")
    config["head_dim"] = layers[0][0].head_dim
    if own_code:
        family = type(model).__name__.removesuffix("ForCausalLM")
        names = {automatic: f"Pruned{family}{automatic.removeprefix('AutoModel') or 'Model'}" for automatic in _AUTO}
        config["architectures"] = [names["AutoModelForCausalLM"]]
        config["auto_map"] = {automatic: f"{_MODULE}.{name}" for automatic, name in names.items()}
        config["per_layer_config"] = _per_layer(layers)
        config["allow_global_per_layer_attribute_access"] = True
    else:
        config["num_attention_heads"], config["num_key_value_heads"] = layers[0][1].heads, layers[0][1].kv_heads
    journal.write_json(path, config)


_AUTO = ("AutoModel", "AutoModelForCausalLM")


def _per_layer(layers: Sequence[tuple[Site, Block]]) -> dict[str, dict[str, Any]]:
    """Return the settings that differ between layers; a key that one layer has must be present in all layers."""
    biased = {site.layer: _has_added_bias(site) for site, _ in layers}
    return {
        str(site.layer): {"num_attention_heads": written.heads, "num_key_value_heads": written.kv_heads}
        | ({"output_bias": biased[site.layer]} if any(biased.values()) else {})
        for site, written in layers
    }


RUNTIME = Vllm()
