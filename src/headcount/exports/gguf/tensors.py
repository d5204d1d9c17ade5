"""Conversion of the weights of a model to the tensor names and shapes of llama.cpp.

Shape suffixes: H heads, D head dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from headcount.exports.blocks import Block, input_heads, output_weight
from headcount.exports.gguf.layout import Layout, rope_type
from headcount.sites.locate import locate
from headcount.sites.site import Site

_FEED_FORWARD = {"gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down"}


def named_tensors(model: PreTrainedModel, layout: Layout) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the float32 array of every tensor."""
    body: Any = model.base_model
    yield "token_embd.weight", _array(body.embed_tokens.weight)
    yield "output_norm.weight", _array(body.norm.weight)
    if not model.config.tie_word_embeddings:
        yield "output.weight", _array(model.get_output_embeddings().weight)
    if rope_type(model.config) != "default":
        yield "rope_freqs.weight", _rope_factors(body)
    for site, block, layer in zip(locate(model), layout.blocks, body.layers, strict=True):
        for name, tensor in _layer(site, block, layer, layout):
            yield f"blk.{site.layer}.{name}", _array(tensor)


def _layer(site: Site, block: Block, layer: Any, layout: Layout) -> Iterator[tuple[str, Tensor]]:
    if block.heads:
        yield "attn_norm.weight", layer.input_layernorm.weight
        yield from _attention(site, block, layout)
    yield "ffn_norm.weight", layer.post_attention_layernorm.weight
    for name, written in _FEED_FORWARD.items():
        projection = getattr(layer.mlp, name)
        yield f"{written}.weight", projection.weight
        if projection.bias is not None:
            yield f"{written}.bias", projection.bias


def _attention(site: Site, block: Block, layout: Layout) -> Iterator[tuple[str, Tensor]]:
    module: Any = site.module
    inputs = {
        role: input_heads(getattr(module, f"{role}_proj"), site, block, kv=role != "q") for role in ("q", "k", "v")
    }
    if layout.paired:
        inputs |= {role: {part: _paired(rows) for part, rows in inputs[role].items()} for role in "qk"}
    if layout.architecture == "openelm":  # one projection for query, key and value, without a bias
        yield "attn_qkv.weight", torch.cat([inputs[role]["weight"].flatten(0, 1) for role in "qkv"])
    else:
        for role, parts in inputs.items():
            for part, rows in parts.items():
                yield f"attn_{role}.{part}", rows.flatten(0, 1)
    for role in "qk":
        norm = getattr(module, f"{role}_norm", None)
        if norm is not None:
            yield f"attn_{role}_norm.weight", norm.weight
    yield "attn_output.weight", output_weight(site, block)
    if module.o_proj.bias is not None:
        yield "attn_output.bias", module.o_proj.bias


def _paired(rows_HD: Tensor) -> Tensor:
    """Reorder the rows of each head from two halves to adjacent pairs: 0 4 1 5 2 6 3 7."""
    halves = rows_HD.unflatten(1, (2, -1))
    return halves.transpose(1, 2).flatten(1, 2)


def _rope_factors(body: Any) -> np.ndarray:
    """Return the factors by which llama.cpp divides the unscaled rotary frequencies."""
    config, scaled = body.config, body.rotary_emb.inv_freq.double()
    size = 2 * len(scaled)
    base = float(config.rope_parameters["rope_theta"])
    plain = base ** -(torch.arange(0, size, 2, dtype=torch.double) / size)
    return np.asarray((plain / scaled.cpu()).float().numpy())


def _array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().float().cpu().numpy())
