"""The average of checkpoints of one model: often better than any of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from headcount.checkpoints.load import load
from headcount.errors import UsageError


def average(folders: Sequence[Path]) -> nn.Module:
    """A model whose every weight is the mean of those in the folders, summed in float64."""
    if not folders:
        raise UsageError("There are no checkpoints to average.")
    model = load(folders[0])
    sums = {name: value.detach().double() for name, value in model.state_dict().items()}
    for folder in folders[1:]:
        for name, value in load(folder).state_dict().items():
            if name not in sums or sums[name].shape != value.shape:
                raise UsageError(
                    f"{folder} and {folders[0]} have different shapes: {name} differs. Give checkpoints of one run."
                )
            sums[name] = sums[name] + value.double()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(sums[name] / len(folders))
    return model
