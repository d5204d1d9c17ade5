"""Wrapper modules for tracing a model, or a part of it, with tensors as inputs and outputs.

The key/value cache is passed in and out as tensors, one pair per layer, with the number of heads of that layer.
Shape suffixes: B batch, P past tokens, T new tokens, S source tokens.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from headcount.sites.inputs import first_position
from headcount.sites.locate import locate
from headcount.sites.projection import relative_path, width_out


class Reader(nn.Module):
    """A model without a cache, such as an encoder: maps a text to one output tensor."""

    def __init__(self, model: nn.Module, output: str) -> None:
        super().__init__()
        self.model, self.output = model, output
        takes = inspect.signature(model.forward).parameters
        self.options = {"use_cache": False} if "use_cache" in takes else {}

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, **types, **self.options)
        return getattr(result, self.output)


class Writer(nn.Module):
    """A decoder: maps tokens [B, T], a mask [B, P + T] and the cache to the logits and the extended cache."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = DynamicCache(_pairs(past))
        result = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            past_key_values=cache,
            use_cache=True,
            **positions(self.model, attention_mask, input_ids.shape[1]),
        )
        return result.logits, *cache_tensors(cache)


class SourceEncoder(nn.Module):
    """The encoder of an encoder-decoder: maps a text to hidden states and to the keys and values of cross attention."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        token_B1 = torch.zeros_like(input_ids[:, :1])  # any: cross attention has its keys and values from the source
        result = self.model(
            input_ids=input_ids, attention_mask=attention_mask, decoder_input_ids=token_B1, use_cache=True
        )
        return result.encoder_last_hidden_state, *cache_tensors(result.past_key_values.cross_attention_cache)


class TargetDecoder(nn.Module):
    """The decoder of an encoder-decoder: maps target tokens and both caches to the logits and the extended cache."""

    def __init__(self, model: PreTrainedModel, layers: int) -> None:
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, input_ids: Tensor, encoder_attention_mask: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        written, source = past[: 2 * self.layers], past[2 * self.layers :]
        cache = EncoderDecoderCache(DynamicCache(_pairs(written)), DynamicCache(_pairs(source)))
        # Cross attention reads its keys and values from the cache, so only the shape of these states is used.
        width = self.model.get_input_embeddings().weight.shape[1]
        states_BSW = encoder_attention_mask[:, :, None].expand(-1, -1, width).to(written[0].dtype)
        result = self.model(
            decoder_input_ids=input_ids,
            encoder_outputs=BaseModelOutput(last_hidden_state=states_BSW),
            attention_mask=encoder_attention_mask,
            past_key_values=cache,
            use_cache=True,
        )
        return result.logits, *cache_tensors(cache.self_attention_cache)


def positions(model: nn.Module, attention_mask: Tensor, length: int) -> dict[str, Tensor]:
    """Return the positions of the last tokens without padding, if the model accepts position ids."""
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return {}
    counted_from_0 = (attention_mask.cumsum(1) - 1).clamp(min=0)[:, -length:]
    return {"position_ids": counted_from_0 + first_position(model)}


def cache_tensors(cache: Any) -> list[Tensor]:
    """Return the keys and values of each layer in turn, each [B, heads, tokens, head dimension]."""
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]


def _pairs(tensors: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(tensors[::2], tensors[1::2], strict=True))


class _Bias(nn.Module):
    """Replacement for an output projection without inputs: outputs its bias, or zeros."""

    def __init__(self, projection: nn.Module) -> None:
        super().__init__()
        bias = getattr(projection, "bias", None)
        self.bias = nn.Parameter(torch.zeros(width_out(projection)) if bias is None else bias.detach().clone())

    def forward(self, context: Tensor) -> Tensor:
        return self.bias.expand(*context.shape[:-1], -1)


def without_empty(model: PreTrainedModel) -> PreTrainedModel:
    """Replace the empty output projections of layers without heads, in a copy: OpenVINO rejects empty matrices."""
    if all(site.num_heads for site in locate(model)):
        return model
    twin = copy.deepcopy(model)
    for site in locate(twin):
        if not site.num_heads:
            owner, _, name = relative_path(site.path, site.attention.output).rpartition(".")
            setattr(twin.get_submodule(owner), name, _Bias(site.output))
    return twin
