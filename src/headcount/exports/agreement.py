"""Comparison of the outputs of a runtime with the outputs of the PyTorch model on a few texts.

Shape suffixes: T tokens, V vocabulary entries or classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        difference: Largest absolute difference over all texts and tokens.
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
        words = f"{self.quantity} differ by at most {self.difference:.2g}"
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
    difference, same, total = 0.0, 0, 0
    with evaluating(model):
        for start in starts:
            ids = list(start)
            for _ in range(STEPS):
                logits_V = model(input_ids=torch.tensor([ids])).logits[0, -1].float().numpy()
                likeliest = predict(ids)
                ours, theirs = logits_V[list(likeliest)], np.array(list(likeliest.values()))
                difference = max(difference, float(np.abs(log_softmax(ours) - log_softmax(theirs)).max()))
                same += int(logits_V.argmax()) == next(iter(likeliest))
                total += 1
                ids.append(int(logits_V.argmax()))
    return Agreement(runtime, version, "log-probabilities of the likeliest tokens", difference, same, total)


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
    difference, same, total = 0.0, 0, 0
    for ours, theirs in zip(expected, computed, strict=True):
        difference = max(difference, float(np.abs(log_softmax(ours) - log_softmax(theirs)).max()))
        same += int((ours.argmax(-1) == theirs.argmax(-1)).sum())
        total += int(np.prod(ours.shape[:-1], dtype=int))
    return Agreement(runtime, version, "log-probabilities", difference, same if writes else 0, total if writes else 0)


def compare_outputs(
    expected: Sequence[np.ndarray], computed: Sequence[np.ndarray], *, runtime: str, version: str
) -> Agreement:
    """Compare outputs other than logits, such as hidden states."""
    pairs = zip(expected, computed, strict=True)
    difference = max(float(np.abs(ours - theirs).max()) for ours, theirs in pairs)
    return Agreement(runtime, version, "outputs", difference, 0, 0)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities, in float64."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
