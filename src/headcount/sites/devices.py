"""Devices: where a model takes its inputs, and its weights if accelerate has offloaded them to memory or disk."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError
from headcount.hooks import configured_module


def compute_device(model: nn.Module) -> torch.device:
    """The device on which the model computes, which differs from that of offloaded weights."""
    hooks = (_hook(module) for module in model.modules())  # that of the whole model may leave it to those of its parts
    device = next(
        (hook.execution_device for hook in hooks if getattr(hook, "execution_device", None) is not None), None
    )
    if device is not None:
        return torch.device(device)
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def input_device(model: nn.Module) -> torch.device:
    """The device for inputs. Raises if the model has no weights."""
    device = compute_device(model)
    if device.type == "meta":
        raise ModelError(
            f"{type(configured_module(model)).__name__} is on the meta device: it has shapes and no weights, and "
            "cannot run. Load it from a checkpoint with hc.load."
        )
    return device


def stored(model: nn.Module, name: str, tensor: Tensor) -> Tensor:
    """A tensor of the model's state by name, also if it was offloaded."""
    if not tensor.is_meta:
        return tensor
    path, _, leaf = name.rpartition(".")
    weights = getattr(_hook(model.get_submodule(path)), "weights_map", None)
    return tensor if weights is None else weights[leaf]


def stored_weight(module: nn.Module) -> Tensor:
    """The weight of a projection, also if it was offloaded."""
    weight: Any = module.weight
    loaded = stored(module, "weight", weight)
    if loaded.is_meta:
        raise ModelError(f"The weight of {type(module).__name__} is on the meta device: it has a shape and no values.")
    return loaded


def _hook(module: nn.Module) -> Any:
    return getattr(module, "_hf_hook", None)
