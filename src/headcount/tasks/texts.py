"""Texts, single or in pairs, with their tokenizer: lengths, hashes and padded batches.

Shapes: B batch, T tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor, nn

from headcount.corpora.examples import example_hash
from headcount.errors import UsageError
from headcount.hooks import original_module
from headcount.sites.devices import input_device
from headcount.sites.inputs import position_limit
from headcount.tasks.soundness import check_ids


@dataclass(frozen=True)
class Texts:
    """Texts of classification and language modelling."""

    texts: Sequence[str]
    tokenizer: Any
    pairs: Sequence[str] | None = None
    max_length: int | None = None  # tokens

    def __len__(self) -> int:
        return len(self.texts)

    def encode(self, rows: Iterable[int]) -> Any:
        """The output of the tokenizer (input_ids, attention_mask, ...) as tensors padded to the longest text.

        Padding goes to the right, whatever side the tokenizer prefers: GPT-2 and others count positions from the left,
        and a text must not depend on how long the others in its batch are.
        """
        return self._tokenized(list(rows), padding=True, padding_side="right", return_tensors="pt")

    @cached_property
    def lengths(self) -> np.ndarray:
        """[N]: tokens of each text."""
        lengths = [
            len(ids)
            for start in range(0, len(self), 1000)
            for ids in self._tokenized(range(start, min(start + 1000, len(self))))["input_ids"]
        ]
        return np.array(lengths)

    @cached_property
    def hashes(self) -> list[str]:
        """[N]: hash of each text, or pair of texts."""
        columns = [self.texts] if self.pairs is None else [self.texts, self.pairs]
        return [example_hash(*texts) for texts in zip(*columns, strict=True)]

    def _tokenized(self, rows: Sequence[int], **options: Any) -> Any:
        if self.max_length:
            options |= {"truncation": True, "max_length": self.max_length}
        pairs = [self.pairs[row] for row in rows] if self.pairs is not None else None
        return self._padding_tokenizer([self.texts[row] for row in rows], pairs, **options)

    @cached_property
    def _padding_tokenizer(self) -> Any:
        """The tokenizer, or a copy that pads with the end token if it has no padding token (Llama, GPT-2)."""
        if self.tokenizer.pad_token is not None:
            return self.tokenizer
        if self.tokenizer.eos_token is None:
            raise UsageError(
                "The tokenizer has neither a padding nor an end token, so texts cannot be batched. "
                "Set tokenizer.pad_token to one of its tokens."
            )
        padded = copy.deepcopy(self.tokenizer)
        padded.pad_token = padded.eos_token
        return padded


def model_inputs(model: nn.Module, batch: Mapping[str, Tensor], names: Iterable[str]) -> dict[str, Tensor]:
    """These entries of a batch on the model's device, with the padding id of the model.

    Decoders that classify read their answer at the last token that is not padding, by its id in the config.
    """
    check_length(model, batch["input_ids"].shape[1])
    check_ids(model, batch["input_ids"])
    inputs = {name: batch[name] for name in names}
    plain_model = getattr(model, "module", original_module(model))  # wrapped if there are several processes
    padding, mask_BT = getattr(getattr(plain_model, "config", None), "pad_token_id", None), batch.get("attention_mask")
    if padding is not None and mask_BT is not None:
        inputs["input_ids"] = inputs["input_ids"].masked_fill(mask_BT == 0, padding)
    device = input_device(model)
    return {name: value.to(device) for name, value in inputs.items()}


def check_length(model: nn.Module, length: int) -> None:
    """Raise if texts are longer than the model's table of positions."""
    limit = position_limit(model)
    if limit is not None and length > limit:
        raise UsageError(
            f"A text has {length} tokens, but {type(original_module(model)).__name__} has positions for {limit}. "
            f"Truncate longer texts: max_length={limit}, or --max-length {limit} on the command line."
        )
