"""State: the state of a training run in one file, written atomically. Safetensors only."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from headcount import journal
from headcount.errors import CheckpointError
from headcount.training.partner import Partner
from headcount.training.standing import Standing


def write_state(
    file: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Standing,
    partner: Partner | None = None,
) -> None:
    tensors = _weights(model, partner)
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
    plain = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    with journal.new_file(file) as fresh:
        save_file(plain, fresh, metadata={"progress": json.dumps(asdict(progress))})


def read_state(
    file: Path, model: nn.Module, optimizer: torch.optim.Optimizer, partner: Partner | None = None
) -> Standing:
    """Restore weights and optimizer; returns the progress of the run."""
    try:
        with open(file, "rb") as descriptor, safe_open(_reopened(descriptor), framework="pt") as stored:
            progress = Standing(**json.loads(stored.metadata()["progress"]))
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file} is not a training state ({error}). Remove it to start again.") from error
    weights = {name: value for name, value in tensors.items() if not name.startswith("optimizer.")}
    current = _weights(model, partner)
    if set(current) != set(weights) or any(current[name].shape != value.shape for name, value in weights.items()):
        raise CheckpointError(
            f"{file} is of a model with other shapes: give another folder, or the same settings as before."
        )
    with torch.no_grad():
        for name, value in weights.items():
            current[name].copy_(value)
    optimizer.load_state_dict(_optimizer_state(optimizer, tensors))
    return progress


def _reopened(file: BinaryIO) -> str:
    """A path that keeps referring to an open file if its name is replaced: safe_open opens the path twice."""
    name = f"/dev/fd/{file.fileno()}"
    return name if os.path.exists(name) else file.name


def _weights(model: nn.Module, partner: Partner | None) -> dict[str, Tensor]:
    """All parameters and buffers, tied ones once under their first name."""
    weights: dict[str, Tensor] = {}
    for what, module in (("model", model), ("partner", partner)):
        if module is not None:
            tensors = [*module.named_parameters(), *module.named_buffers()]
            weights |= {f"{what}.{name}": value for name, value in tensors}
    return weights


def _optimizer_state(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> dict[str, Any]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            state.setdefault(int(number), {})[name] = value
    return {**optimizer.state_dict(), "state": state}
