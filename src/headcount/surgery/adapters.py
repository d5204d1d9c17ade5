"""Adapters: attention modules with fewer heads than the rest of the model expects. Know modules, not sites.

A pruned module keeps the code of its class; if that is not enough, its class is replaced by a subclass made here:
`PicksBias` for a position bias shared by all layers, `Gathers` for uneven key/value groups, `Empty` for no heads.
Nothing is hooked, so the module can be copied, serialised, compiled and exported like any other.

This file also travels inside standalone checkpoints: it imports nothing of headcount.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, Cache
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.pytorch_utils import Conv1D

_GATHER = "headcount-gather-"
_Attention: Any = object  # mixins precede an attention class and use its attributes and `super()`


def adapt(module: nn.Module, *mixins: type) -> None:
    """Set the class of a module to its original class with exactly these mixins."""
    base: Any = getattr(type(module), "headcount_base", type(module))
    module.__class__ = _subclass(base, mixins) if mixins else base


@cache
def _subclass(base: Any, mixins: tuple[type, ...]) -> type:
    # Name and module are kept: transformers finds eager attention and recorded outputs by them.
    positional = list(inspect.signature(base.forward).parameters)[2:]  # without self and hidden_states
    attributes = {"headcount_base": base, "headcount_positional": positional, "__module__": base.__module__}
    named = {"__qualname__": base.__qualname__, "__doc__": base.__doc__}
    # A serialiser looks for a class by its name, which is that of the original: it gets the parts to make it from.
    reduced = {"__reduce_ex__": lambda module, _: (_unfilled, (base, mixins), module.__dict__)}
    return type(base.__name__, (*mixins, base), {**attributes, **named, **reduced})


def _unfilled(base: type, mixins: tuple[type, ...]) -> Any:
    """A module of the subclass without its contents, which a serialiser and deepcopy add."""
    subclass: Any = _subclass(base, mixins)
    return subclass.__new__(subclass)


class ConfigView:
    """A config with some entries changed for one module; all others are read from the shared config."""

    def __init__(self, base: object, changes: Mapping[str, object], *, gathers: bool = False) -> None:
        self.__dict__.update(base=base, changes=changes, gathers=gathers)

    def __getattr__(self, name: str) -> Any:
        if name in ("base", "changes", "gathers"):  # missing while the object is being copied
            raise AttributeError(name)
        if name == "_attn_implementation" and self.gathers:
            return gathering_backend(self.base._attn_implementation)
        return self.changes[name] if name in self.changes else getattr(self.base, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.base, name, value)

    def __deepcopy__(self, memo: dict[int, object]) -> ConfigView:
        return ConfigView(copy.deepcopy(self.base, memo), dict(self.changes), gathers=self.gathers)


def gathering_backend(backend: str | None) -> str:
    """The name of an attention function that gives every query head its key/value head, then calls `backend`."""
    backend = backend or "eager"
    name = _GATHER + backend
    if name not in ALL_ATTENTION_FUNCTIONS.valid_keys():
        AttentionInterface.register(name, _gathering(backend))
    return name


def _gathering(backend: str) -> Callable[..., Any]:
    def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Any:
        modelling = sys.modules[type(module).__module__]
        function = modelling.eager_attention_forward if backend == "eager" else ALL_ATTENTION_FUNCTIONS[backend]
        places: list[int] = module.kv_of_head
        return function(module, query, key[:, places], value[:, places], *rest, **options)

    return attend


class PicksT5Bias(_Attention):
    """T5: the bias passed from layer to layer has all original heads; this layer selects its own."""

    bias_heads: Sequence[int]

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor | None = None,
        key_value_states: Tensor | None = None,
        position_bias: Tensor | None = None,
        past_key_values: Cache | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        shared, past = position_bias, _length(past_key_values, self.layer_idx)
        if key_value_states is not None:
            position_bias = None  # cross-attention has a bias of zeros, which every layer can compute itself
        elif shared is not None:
            position_bias = shared[:, self.bias_heads]
        output, bias, weights = super().forward(
            hidden_states, mask, key_value_states, position_bias, past_key_values, **options
        )
        if shared is None and key_value_states is None:
            shared = super().compute_bias(*bias.shape[-2:], device=bias.device, past_seen_tokens=past)
        return output, shared, weights

    def compute_bias(self, *args: Any, **kwargs: Any) -> Tensor:
        bias_1HQK: Tensor = super().compute_bias(*args, **kwargs)
        return bias_1HQK[:, self.bias_heads]


class PicksMPNetBias(_Attention):
    """MPNet: the encoder's bias has all original heads; this layer selects its own."""

    bias_heads: Sequence[int]

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        position_bias: Tensor | None = None,
        *args: Any,
        **options: Any,
    ) -> Any:
        bias = None if position_bias is None else position_bias[:, self.bias_heads]
        return super().forward(hidden_states, attention_mask, bias, *args, **options)


class PicksBloomBias(_Attention):
    """BLOOM: the model's ALiBi bias has all original heads; this layer selects its own."""

    bias_heads: Sequence[int]
    bias_total: int

    def forward(self, hidden_states: Tensor, residual: Tensor, alibi: Tensor, *args: Any, **options: Any) -> Any:
        alibi_BH1K = alibi.unflatten(0, (-1, self.bias_total))
        slopes = alibi_BH1K[:, self.bias_heads].flatten(0, 1)
        return super().forward(hidden_states, residual, slopes, *args, **options)


class Empty(_Attention):
    """Attention without heads: its output is the bias of the output projection.

    The cache still gets one number per token, because masks and positions are taken from the first layer's length.
    """

    headcount_tail: dict[str, Any]
    headcount_positional: list[str]

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        arguments = {**dict(zip(self.headcount_positional, args, strict=False)), **kwargs}
        tail = self.headcount_tail
        keys, past = (
            arguments.get(tail["keys"]),
            _length(arguments.get(tail["cache"]), getattr(self, tail["cache_index"], None)),
        )
        length = self._note_in_cache(hidden_states, keys, arguments.get(tail["cache"]))
        weights = self._weights(hidden_states, length)
        context = hidden_states.new_zeros(*hidden_states.shape[:-1], 0)
        if tail["form"] == "context":
            return context, weights
        output = _project(getattr(self, tail["output"]), context)
        for name in tail["after"]:
            output = getattr(self, name)(output)
        if tail["form"] == "t5":
            shared = arguments.get("position_bias")
            if shared is None and keys is None and self.has_relative_attention_bias:
                shared = super().compute_bias(
                    hidden_states.shape[1], length, device=output.device, past_seen_tokens=past
                )
            return output, shared, weights
        if tail["form"] == "bloom":
            dropped = nn.functional.dropout(output, p=self.hidden_dropout, training=self.training)
            return arguments["residual"] + dropped, weights
        if tail["form"] == "albert":
            return self.LayerNorm(hidden_states + output), weights
        return output, weights

    def _note_in_cache(self, hidden_states: Tensor, keys: Tensor | None, cache: Cache) -> int:
        """Write a placeholder for the new tokens into the cache; returns the number of tokens so far."""
        index = getattr(self, self.headcount_tail["cache_index"], None)
        cross = keys is not None
        length = (keys if keys is not None else hidden_states).shape[1]
        if cache is None or index is None:
            return length
        if isinstance(cache, EncoderDecoderCache):
            if cross and cache.is_updated.get(index):
                return length
            if cross:
                cache.is_updated[index] = True
            cache = cache.cross_attention_cache if cross else cache.self_attention_cache
        note = hidden_states.new_zeros(hidden_states.shape[0], 1, length, 1)
        stored, _ = cache.update(note, note, index)
        return int(stored.shape[-2])

    def _weights(self, hidden_states: Tensor, length: int) -> Tensor | None:
        """[B, 0, Q, K], so that lists of attentions have all layers; None if other layers return none."""
        backend = getattr(getattr(self, "config", None), "_attn_implementation", None)
        if backend not in (None, "eager"):
            return None
        return hidden_states.new_zeros(hidden_states.shape[0], 0, hidden_states.shape[1], length)


def _project(projection: nn.Module, context: Tensor) -> Tensor:
    """The bias, for a context of width 0, which the code of Conv1D cannot reshape and LoRA adds nothing to."""
    projection = getattr(projection, "base_layer", projection)
    if isinstance(projection, Conv1D):
        return context @ projection.weight + projection.bias
    return projection(context)


def _length(cache: Cache, index: int | None) -> int | Tensor:
    """Tokens in the self-attention cache before this call."""
    if cache is None or index is None:
        return 0
    length: int | Tensor = cache.get_seq_length(index)
    return length.clone() if isinstance(length, torch.Tensor) else length  # a static cache updates its length in place
