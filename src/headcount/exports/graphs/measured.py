"""Speed and quality of graphs that a runtime has loaded."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.exports.graphs.session import GraphModel, Progress
from headcount.exports.measured import Measured, token_ids
from headcount.exports.module import RuntimeModule
from headcount.timing import TimedCall

_FLOAT = 4  # bytes per value in the cache


class MeasuredGraphs(Measured):
    """The loaded graphs of one model to measure."""

    def __init__(self, model: GraphModel, path: Path) -> None:
        super().__init__(path)
        self._model = model

    def cache_bytes(self, length: int) -> int:
        return _FLOAT * length * sum(prod(size for size in shape if size) for shape in self._model.cache_shapes)

    def module(self) -> RuntimeModule:
        return RuntimeModule(self._compute, self.path)

    def _compute(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        model, text = self._model, {name: tensor.numpy() for name, tensor in inputs.items()}
        if not model.writes:
            text.setdefault("token_type_ids", np.zeros_like(text["input_ids"]))
            return {model.output: torch.from_numpy(model.read(text))}
        progress = model.begin(text)
        target = (text["decoder_input_ids"],) if model.is_pair else (text["input_ids"], text["attention_mask"])
        return {model.output: torch.from_numpy(model.step(progress, *target))}

    def works(self, batch: int, length: int, written: int) -> dict[str, TimedCall]:
        """Each is run once: a graph does not say how many positions its model has."""
        try:
            works = self._works(batch, length, written)
            for work in works.values():
                work()
        except Exception as error:  # each runtime has errors of its own
            after = f", or does not write {written} after them" if self._model.writes else ""
            raise UsageError(
                f"{self.path} does not read {length} tokens{after}: give fewer (--lengths, --written). {error}"
            ) from error
        return works

    def _works(self, batch: int, length: int, written: int) -> dict[str, TimedCall]:
        ids, model = token_ids(batch, length), self._model
        text = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        if not model.writes:
            return {"reading": lambda: model.read(text)}
        decoder_input = ids[:, :1] if model.is_pair else ids
        start = model.begin(text)
        model.step(start, decoder_input)

        def reading() -> None:
            model.step(model.begin(text), decoder_input)

        def writing() -> None:
            progress = Progress(start.mask, dict(start.cache))
            for _ in range(written):
                model.step(progress, ids[:, :1])

        return {"reading": reading, "writing": writing}
