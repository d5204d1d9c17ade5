"""An export as a PyTorch module, so that a task measures its quality as that of any model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UsageError

# What tasks read from a config; the decoder may have one of its own.
_SETTINGS = ("model_type", "pad_token_id", "decoder_start_token_id", "is_encoder_decoder")
_OF_DECODER = "bos_token_id"


class RuntimeModule(nn.Module):
    """A module with the inputs and outputs of a Hugging Face model that runs in another runtime."""

    def __init__(self, compute: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]], path: Path) -> None:
        """compute: maps inputs by name to outputs by name. path: file or folder of the export."""
        super().__init__()
        self._compute, self._path = compute, path
        file = path / "config.json"
        settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        decoder = settings.get("decoder")
        start = decoder.get(_OF_DECODER) if isinstance(decoder, dict) else None
        self.config = SimpleNamespace(**{name: settings.get(name) for name in _SETTINGS})
        self.config.decoder = SimpleNamespace(**{_OF_DECODER: start})
        # Tasks look at the weights for the device and for the precision to expect. Quantization of activations depends
        # on all texts of a batch, so that the precision is not that of float32.
        self.weight = nn.Parameter(torch.zeros((), dtype=torch.float16), requires_grad=False)

    def forward(self, **inputs: Any) -> _Outputs:
        tensors = {name: value for name, value in inputs.items() if isinstance(value, Tensor)}
        return _Outputs(self._compute(tensors), self._path)


class _Outputs:
    """The outputs of an export as attributes."""

    def __init__(self, tensors: Mapping[str, Tensor], path: Path) -> None:
        self._tensors, self._path = tensors, path

    def __getattr__(self, name: str) -> Tensor:
        if name in self._tensors:
            return self._tensors[name]
        raise UsageError(
            f"{self._path} gives {', '.join(self._tensors)}, but the task needs {name}. Export a model that was "
            "loaded for this task."
        )
