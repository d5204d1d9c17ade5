"""Comparison of the outputs of a runtime with the outputs of the PyTorch model on a few texts.

Shape suffixes: T tokens, V vocabulary entries or classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.sites.inputs import example_batch, longest
from headcount.sites.running import evaluating

TEXTS = (
    "The capital of France is",
    "Once upon a time there was a little girl who",
    "In 1969, three men flew to the moon: 1, 2, 3",
)
STEPS = 8  # tokens generated after each prompt
_LONGEST_PROMPT = 24


@dataclass(frozen=True)
class Agreement:
    """The result of checking an export.

    Attributes:
        runtime: Name of the runtime.
        version: Version of the runtime.
        quantity: The values that were compared, such as log-probabilities or outputs.
        difference: Largest absolute difference over all texts and tokens, see `largest_difference`.
        same_tokens: Number of greedy choices that are the same.
        tokens: Number of greedy choices that were compared. 0 if the model generates no text.
    """

    runtime: str
    version: str
    quantity: str
    difference: float
    same_tokens: int
    tokens: int

    def __str__(self) -> str:
        is_bounded = math.isfinite(self.difference)
        words = f"{self.quantity} {f'differ by at most {self.difference:.2g}' if is_bounded else 'are NaN or infinite'}"
        if self.tokens:
            words += f", {self.same_tokens} of {self.tokens} greedy choices are the same"
        return f"{self.runtime} {self.version}: {words}"


def prompts(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Return prompts as token ids: real text if there is a tokenizer, random ids otherwise."""
    limit = max(1, min(_LONGEST_PROMPT, longest(model, _LONGEST_PROMPT + STEPS) - STEPS))
    if tokenizer is None:
        synthetic = example_batch(model, batch=len(TEXTS), length=min(8, limit), padded=False)
        return [[int(token) for token in row] for row in synthetic["input_ids"]]
    return [list(tokenizer(text).input_ids)[:limit] for text in TEXTS]


def compare_next_tokens(
    model: PreTrainedModel,
    starts: Sequence[Sequence[int]],
    predict: Callable[[list[int]], Mapping[int, float]],
    *,
    runtime: str,
    version: str,
) -> Agreement:
    """Compare a decoder token by token on the text that the PyTorch model generates greedily.

    Args:
        model: The PyTorch model.
        starts: Prompts as token ids.
        predict: Maps token ids to the runtime's log-probabilities of the most likely next tokens, most likely first.
            They are normalized over these tokens before the comparison, because llama.cpp's float32 sum over a
            large vocabulary is wrong in the fourth digit.
        runtime: Name of the runtime.
        version: Version of the runtime.
    """
    pairs, same = list[tuple[np.ndarray, np.ndarray]](), 0
    with evaluating(model):
        for start in starts:
            ids = list(start)
            for _ in range(STEPS):
                logits_V = model(input_ids=torch.tensor([ids])).logits[0, -1].float().numpy()
                likeliest = predict(ids)
                ours, theirs = logits_V[list(likeliest)], np.array(list(likeliest.values()))
                pairs.append((log_softmax(ours), log_softmax(theirs)))
                same += int(logits_V.argmax()) == next(iter(likeliest))
                ids.append(int(logits_V.argmax()))
    quantity, difference = "log-probabilities of the likeliest tokens", largest_difference(pairs)
    return Agreement(runtime, version, quantity, difference, same, len(pairs))


def compare_logits(
    expected: Sequence[np.ndarray], computed: Sequence[np.ndarray], *, runtime: str, version: str, writes: bool
) -> Agreement:
    """Compare the logits of each text, after log-softmax.

    Args:
        expected: Logits [T, V] or [V] of the PyTorch model for each text.
        computed: Logits of the runtime for each text.
        runtime: Name of the runtime.
        version: Version of the runtime.
        writes: Whether the model generates text, so that greedy choices are compared too.
    """
    difference = largest_difference(zip(map(log_softmax, expected), map(log_softmax, computed), strict=True))
    same, total = 0, 0
    for ours, theirs in zip(expected, computed, strict=True):
        same += int((ours.argmax(-1) == theirs.argmax(-1)).sum())
        total += int(np.prod(ours.shape[:-1], dtype=int))
    return Agreement(runtime, version, "log-probabilities", difference, same if writes else 0, total if writes else 0)


def compare_outputs(
    expected: Sequence[np.ndarray], computed: Sequence[np.ndarray], *, runtime: str, version: str
) -> Agreement:
    """Compare outputs other than logits, such as hidden states."""
    difference = largest_difference(zip(expected, computed, strict=True))
    return Agreement(runtime, version, "outputs", difference, 0, 0)


def largest_difference(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    """Largest absolute difference of pairs of arrays. NaN differs infinitely from everything, also from NaN."""
    largest = 0.0
    for expected, computed in pairs:
        with np.errstate(invalid="ignore"):  # equal infinities, such as tokens that are ruled out: no difference
            difference = np.where(expected == computed, 0.0, np.abs(expected - computed))
        largest = max(largest, float(np.nan_to_num(difference, nan=math.inf, posinf=math.inf).max()))
    return largest


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities, in float64."""
    with np.errstate(invalid="ignore"):  # infinity in a damaged model gives NaN
        shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
