"""Session: graphs loaded by a runtime, and text read and written with them. Knows no runtime and no PyTorch.

Shape suffixes: B texts, T tokens read now, V words of the vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

PAST, PRESENT = "past_key_values", "present"  # prefixes of the cache that comes in and that goes out, as in Optimum
Arrays = dict[str, np.ndarray]


class Session(ABC):
    """One graph, loaded."""

    shapes: Mapping[str, tuple[int | None, ...]]  # of the inputs; None where a size is free

    @abstractmethod
    def run(self, inputs: Mapping[str, np.ndarray]) -> Arrays:
        """Outputs by name."""


@dataclass
class Progress:
    """A batch of texts half-way: the mask of what was read, and the cache."""

    mask: np.ndarray
    cache: Arrays = field(default_factory=dict)


class GraphModel:
    """A model made of one graph, or of an encoder and a decoder."""

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
        """Of each tensor of the cache: texts, heads, tokens, numbers of a head; None where a size is free."""
        return [shape for name, shape in self._main.shapes.items() if name.startswith(PAST)]

    def read(self, text: Mapping[str, np.ndarray]) -> np.ndarray:
        """What a model that only reads computes of a text."""
        return next(iter(self._main.run({name: text[name] for name in self._main.shapes}).values()))

    def begin(self, text: Mapping[str, np.ndarray]) -> Progress:
        """Before anything is written; an encoder reads the text."""
        batch, mask = len(text["input_ids"]), text["attention_mask"]
        cache = {
            name: np.zeros([batch, *(size or 0 for size in shape[1:])], dtype=np.float32)
            for name, shape in self._main.shapes.items()
            if name.startswith(PAST)
        }
        if self._encoder is None:
            return Progress(mask[:, :0], cache)
        outputs = self._encoder.run({name: text[name] for name in self._encoder.shapes})
        return Progress(mask, cache | _carried(outputs))

    def step(self, progress: Progress, ids_BT: np.ndarray, mask_BT: np.ndarray | None = None) -> np.ndarray:
        """Read further tokens: logits [B, T, V]; the cache of `progress` grows."""
        inputs = {"input_ids": ids_BT, **progress.cache}
        if self._encoder is None:
            further = np.ones_like(ids_BT) if mask_BT is None else mask_BT
            progress.mask = np.concatenate([progress.mask, further], axis=1)
            inputs["attention_mask"] = progress.mask
        else:
            inputs["encoder_attention_mask"] = progress.mask
        outputs = self._main.run({name: inputs[name] for name in self._main.shapes})
        progress.cache |= _carried(outputs)
        return outputs["logits"]


def _carried(outputs: Mapping[str, np.ndarray]) -> Arrays:
    return {name.replace(PRESENT, PAST): array for name, array in outputs.items() if name.startswith(PRESENT)}
