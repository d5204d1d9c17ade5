"""The state of a training run: read from one file, whatever takes its name meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from headcount.training.standing import Standing
from headcount.training.state import read_state, write_state


def filled(value: float) -> nn.Linear:
    model = nn.Linear(3, 2)
    for parameter in model.parameters():
        nn.init.constant_(parameter, value)
    return model


def test_weights_and_progress_are_of_one_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """safetensors opens the file by name for what it says, and once more for its tensors."""
    state, usual = tmp_path / "state.safetensors", torch.UntypedStorage.from_file

    def write(value: float) -> None:
        model = filled(value)
        write_state(state, model, torch.optim.Adam(model.parameters()), Standing(step=int(value)))

    def replaced_first(*arguments: Any, **options: Any) -> Any:
        write(2.0)
        return usual(*arguments, **options)

    write(1.0)
    monkeypatch.setattr(torch.UntypedStorage, "from_file", replaced_first)
    model = filled(0.0)
    progress = read_state(state, model, torch.optim.Adam(model.parameters()))
    assert (progress.step, model.weight[0, 0].item()) == (1, 1.0)
