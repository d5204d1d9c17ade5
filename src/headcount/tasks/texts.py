"""Texts with the tokenizer that reads them: their lengths, and any of them side by side. Single or in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Texts:
    """What classification and language modelling read."""

    texts: Sequence[str]
    tokenizer: Any
    pairs: Sequence[str] | None = None
    max_length: int | None = None  # tokens

    def __len__(self) -> int:
        return len(self.texts)

    def encode(self, rows: Iterable[int]) -> Any:
        """input_ids, attention_mask and what else the tokenizer makes, as tensors padded to the longest."""
        return self._tokenized(list(rows), padding=True, return_tensors="pt")

    @cached_property
    def lengths(self) -> np.ndarray:
        """[N]: tokens of each text."""
        found = [
            len(ids)
            for start in range(0, len(self), 1000)
            for ids in self._tokenized(range(start, min(start + 1000, len(self))))["input_ids"]
        ]
        return np.array(found)

    def _tokenized(self, rows: Sequence[int], **options: Any) -> Any:
        if self.max_length:
            options |= {"truncation": True, "max_length": self.max_length}
        pairs = [self.pairs[row] for row in rows] if self.pairs is not None else None
        return self.tokenizer([self.texts[row] for row in rows], pairs, **options)
