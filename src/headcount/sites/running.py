"""Running a model just to look at it: eval mode, eager attention, a made-up batch, and no trace of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from headcount.errors import ModelError

_BACKEND = "_attn_implementation_internal"


@contextmanager
def evaluating(model: nn.Module, *, gradients: bool = False) -> Iterator[None]:
    """Eval mode, no gradients, fixed random numbers inside the block; each module's mode and the seed return.

    gradients: let gradients flow to what asks for them, masks for example, but not to the model's parameters.
    """
    modes = [(module, module.training) for module in model.modules()]
    # Frozen only where needed: whether weights are trained decides which matrix product torch takes, to the last bit.
    trained = [parameter for parameter in model.parameters() if gradients and parameter.requires_grad]
    # each of these has random numbers of its own
    graphics = sorted({p.device.index for p in model.parameters() if p.device.type == "cuda"})
    try:
        model.eval()
        for parameter in trained:
            parameter.requires_grad_(False)
        with torch.set_grad_enabled(gradients), torch.random.fork_rng(devices=graphics):
            torch.manual_seed(0)  # models that draw numbers (masked autoencoders) draw the same ones every time
            yield
    finally:
        for module, training in modes:
            module.training = training
        for parameter in trained:
            parameter.requires_grad_(True)


def eager_attention(model: nn.Module) -> AbstractContextManager[None]:
    """Compute attention step by step inside the block: the only backend that hands out its probabilities."""
    return attention_backend(model, "eager")


@contextmanager
def attention_backend(model: nn.Module, name: str) -> Iterator[None]:
    """Compute attention by this backend inside the block."""
    configs = {
        id(config): config
        for module in model.modules()
        if isinstance(config := getattr(module, "config", None), PreTrainedConfig)
    }
    before = [(config, getattr(config, _BACKEND, None)) for config in configs.values()]
    try:
        for config, _ in before:
            setattr(config, _BACKEND, name)
        yield
    finally:
        for config, backend in before:
            setattr(config, _BACKEND, backend)


def run(model: nn.Module, batch: Mapping[str, Tensor], *, synthetic: bool) -> Any:
    """The model's output; an error explains when the generated batch does not fit."""
    try:
        return model(**batch)
    except Exception as error:
        if not synthetic:
            raise
        raise ModelError(
            f"{type(model).__name__} does not run on the test batch that headcount generates "
            f"({type(error).__name__}: {error}). Pass a batch of your own with batch=."
        ) from error
