"""Projections: linear layers in their two layouts, found by relative path. Knows weights, not heads."""

from __future__ import annotations

from torch import nn
from transformers.pytorch_utils import Conv1D


def width_in(projection: nn.Module) -> int:
    """Number of input features; GPT-2's Conv1D calls it `nx`."""
    return int(projection.nx) if isinstance(projection, Conv1D) else int(projection.in_features)  # type: ignore[arg-type]


def width_out(projection: nn.Module) -> int:
    """Number of output features; GPT-2's Conv1D calls it `nf`."""
    return int(projection.nf) if isinstance(projection, Conv1D) else int(projection.out_features)  # type: ignore[arg-type]


def wrapping(projection: nn.Module) -> str:
    """Reason why a projection computes with more than its weight, with advice; empty if it does not."""
    wrapped = hasattr(projection, "base_layer")
    return "wrapped by an adapter (PEFT): call model.merge_and_unload() first" if wrapped else ""


def relative(model: nn.Module, path: str, name: str) -> nn.Module:
    """The module called `name` as seen from the module at `path`; a leading `..` means its parent."""
    return model.get_submodule(relative_path(path, name))


def relative_path(path: str, name: str) -> str:
    if name.startswith(".."):
        path, name = path.rpartition(".")[0], name[2:]
    return f"{path}.{name}" if path else name
