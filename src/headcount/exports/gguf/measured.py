"""Speed and quality of a GGUF file in llama.cpp.

Shape suffixes: B batch, T tokens, V vocabulary entries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headcount.exports.gguf.llama_cpp import LlamaCpp, load
from headcount.exports.measured import Measured, token_ids
from headcount.exports.module import RuntimeModule
from headcount.timing import TimedCall

_FLOAT = 4  # bytes per value in the cache
_MARGIN = 32  # tokens of context beyond the requested length


class MeasuredGguf(Measured):
    """A GGUF file to measure; llama.cpp processes the texts of a batch one after another."""

    def __init__(self, path: Path, *, threads: int) -> None:
        super().__init__(path)
        self._threads = threads
        self._llama_cpp: LlamaCpp | None = None
        self._context = 0
        self._fields = _metadata(path)

    def cache_bytes(self, length: int) -> int:
        kv_heads = self._fields["attention.head_count_kv"]
        layers = kv_heads if isinstance(kv_heads, list) else [kv_heads] * self._fields["block_count"]
        numbers = self._fields["attention.key_length"] + self._fields["attention.value_length"]
        return int(_FLOAT * length * sum(layers) * numbers)

    def limit(self, length: int, written: int) -> int:
        """llama.cpp stops writing, without a word, where the context of the model ends."""
        return min(length, max(0, int(self._fields["context_length"]) - written))

    def works(self, batch: int, length: int, written: int) -> dict[str, TimedCall]:
        llama_cpp, texts = self._loaded(length + written + _MARGIN), token_ids(batch, length).tolist()

        def reading() -> None:
            for text in texts:
                llama_cpp.write(text, 1, remember=False)

        def writing() -> None:
            for _ in texts:  # repeat one text, so that its prompt stays in the cache
                llama_cpp.write(texts[0], written, remember=True)

        return {"reading": reading, "writing": writing}

    def module(self) -> RuntimeModule:
        return RuntimeModule(self._compute, self.path)

    def _compute(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Logits that give the next token of each text its probability, and another token the rest.

        llama.cpp's server gives no logits of a prompt: it is asked for the next token after each beginning of a text.
        """
        ids_BT, mask_BT = inputs["input_ids"], inputs["attention_mask"]
        vocabulary = int(self._fields["vocab_size"])
        llama_cpp = self._loaded(ids_BT.shape[1] + _MARGIN)
        logits_BTV = torch.zeros(*ids_BT.shape, vocabulary)
        for row, length in enumerate(mask_BT.sum(-1).tolist()):
            text = ids_BT[row, :length].tolist()
            for index, value in enumerate(llama_cpp.log_probabilities(text, vocabulary)):
                token = text[index + 1]
                logits_V = logits_BTV[row, index].fill_(-math.inf)
                logits_V[token] = value
                logits_V[int(token == 0)] = math.log(-math.expm1(value)) if value < 0 else -math.inf
        return {"logits": logits_BTV}

    def _loaded(self, context: int) -> LlamaCpp:
        if self._llama_cpp is None or context > self._context:
            self._llama_cpp, self._context = load(self.path, context=context, threads=self._threads), context
        return self._llama_cpp


def _metadata(path: Path) -> dict[str, Any]:
    """The metadata of a file whose keys start with its architecture, without this prefix."""
    import gguf

    fields = gguf.GGUFReader(path).fields
    prefix = f"{fields['general.architecture'].contents()}."
    return {name.removeprefix(prefix): field.contents() for name, field in fields.items() if name.startswith(prefix)}
