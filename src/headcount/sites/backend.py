"""The attention backend of a model, switched for a while. Knows configs, not heads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from transformers import PreTrainedConfig

_BACKEND = "_attn_implementation_internal"


@contextmanager
def eager_attention(model: nn.Module) -> Iterator[None]:
    """Compute attention step by step inside the block: the only backend that hands out its probabilities."""
    configs = {
        id(config): config
        for module in model.modules()
        if isinstance(config := getattr(module, "config", None), PreTrainedConfig)
    }
    before = [(config, getattr(config, _BACKEND, None)) for config in configs.values()]
    try:
        for config, _ in before:
            setattr(config, _BACKEND, "eager")
        yield
    finally:
        for config, backend in before:
            setattr(config, _BACKEND, backend)
