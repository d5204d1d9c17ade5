"""Inference and generation with graphs that a runtime has loaded, without PyTorch.

Shape suffixes: B batch, T new tokens, V vocabulary entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

PAST, PRESENT = "past_key_values", "present"  # name prefixes of cache inputs and outputs, as in Optimum
Arrays = dict[str, np.ndarray]


class Session(ABC):
    """A graph that a runtime has loaded.

    Attributes:
        shapes: Shape of each input by name. None stands for a dynamic size.
        outputs: Names of the outputs.
    """

    shapes: Mapping[str, tuple[int | None, ...]]
    outputs: Sequence[str]

    @abstractmethod
    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the graph and return its outputs by name.

        Outputs of the cache may be values of the runtime instead of arrays; they are only given back to `run`.
        """


@dataclass
class Progress:
    """The state of generation for a batch.

    Attributes:
        mask: Attention mask of the tokens processed so far, or of the source for an encoder-decoder.
        cache: Key/value cache by input name, as arrays or values of the runtime.
    """

    mask: np.ndarray
    cache: dict[str, Any] = field(default_factory=dict)


class GraphModel:
    """A model that consists of one graph, or of an encoder graph and a decoder graph."""

    def __init__(self, sessions: Mapping[str, Session]) -> None:
        self._encoder = sessions.get("encoder_model")
        self._main = sessions["decoder_model" if self._encoder else "model"]

    @property
    def writes(self) -> bool:
        return bool(self.cache_shapes)

    @property
    def is_pair(self) -> bool:
        return self._encoder is not None

    @property
    def cache_shapes(self) -> list[tuple[int | None, ...]]:
        """The shape [batch, heads, tokens, head dimension] of each cache input; None stands for a dynamic size."""
        return [shape for name, shape in self._main.shapes.items() if name.startswith(PAST)]

    @property
    def foreign_inputs(self) -> list[str]:
        """Inputs that the graphs of an export do not have: another program wrote this graph, or it is one of two."""
        text = {"input_ids", "attention_mask"}
        if self._encoder is not None:
            expected = {"input_ids", "encoder_attention_mask"}
        else:
            expected = text if self.writes else text | {"token_type_ids"}
        foreign = [name for name in self._main.shapes if name not in expected and not name.startswith(PAST)]
        return foreign + [name for name in (self._encoder.shapes if self._encoder else ()) if name not in text]

    @property
    def output(self) -> str:
        """The name of the main output, logits or last_hidden_state."""
        return self._main.outputs[0]

    def read(self, text: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the output of a model without a cache for a batch."""
        outputs = self._main.run({name: text[name] for name in self._main.shapes})
        return np.asarray(outputs[self.output])

    def begin(self, text: Mapping[str, np.ndarray]) -> Progress:
        """Return the initial state of generation; an encoder, if there is one, processes the text."""
        batch, mask = len(text["input_ids"]), text["attention_mask"]
        cache: dict[str, Any] = {
            name: np.zeros([batch, *(size or 0 for size in shape[1:])], dtype=np.float32)
            for name, shape in self._main.shapes.items()
            if name.startswith(PAST)
        }
        if self._encoder is None:
            return Progress(mask[:, :0], cache)
        outputs = self._encoder.run({name: text[name] for name in self._encoder.shapes})
        return Progress(mask, cache | _carried(outputs))

    def step(self, progress: Progress, ids_BT: np.ndarray, mask_BT: np.ndarray | None = None) -> np.ndarray:
        """Process new tokens, extend the cache of `progress` and return the logits [B, T, V]."""
        inputs = {"input_ids": ids_BT, **progress.cache}
        if self._encoder is None:
            further = np.ones_like(ids_BT) if mask_BT is None else mask_BT
            progress.mask = np.concatenate([progress.mask, further], axis=1)
            inputs["attention_mask"] = progress.mask
        else:
            inputs["encoder_attention_mask"] = progress.mask
        outputs = self._main.run({name: inputs[name] for name in self._main.shapes})
        progress.cache |= _carried(outputs)
        return np.asarray(outputs["logits"])


def _carried(outputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace(PRESENT, PAST): array for name, array in outputs.items() if name.startswith(PRESENT)}
