"""Agreement: how close what a runtime computes is to what the PyTorch model computes, on a few texts.

Shape suffixes: T tokens, V words of the vocabulary or classes.
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
STEPS = 8  # tokens that are written after each prompt
_LONGEST_PROMPT = 24


@dataclass(frozen=True)
class Agreement:
    """What a check found."""

    runtime: str
    version: str
    quantity: str  # what was compared: log-probabilities or outputs
    difference: float  # the largest, over all texts and tokens
    same_tokens: int  # greedy choices that are the same
    tokens: int  # greedy choices that were compared; 0 where the model writes no text

    def __str__(self) -> str:
        words = f"{self.quantity} differ by at most {self.difference:.2g}"
        if self.tokens:
            words += f", {self.same_tokens} of {self.tokens} greedy choices are the same"
        return f"{self.runtime} {self.version}: {words}"


def prompts(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Prompts as token ids: of real text where there is a tokenizer, made up otherwise."""
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
    """Compare a decoder token by token on the text that the model writes greedily.

    predict: from token ids to the runtime's log-probabilities of the likeliest next tokens, likeliest first.
        They are compared among each other: llama.cpp's own sum over a large vocabulary, in float32, is wrong in the
        fourth digit.
    """
    difference, same, total = 0.0, 0, 0
    with evaluating(model):
        for start in starts:
            ids = list(start)
            for _ in range(STEPS):
                logits_V = model(input_ids=torch.tensor([ids])).logits[0, -1].float().numpy()
                likeliest = predict(ids)
                ours, theirs = logits_V[list(likeliest)], np.array(list(likeliest.values()))
                difference = max(difference, float(np.abs(_log_softmax(ours) - _log_softmax(theirs)).max()))
                same += int(logits_V.argmax()) == next(iter(likeliest))
                total += 1
                ids.append(int(logits_V.argmax()))
    return Agreement(runtime, version, "log-probabilities of the likeliest tokens", difference, same, total)


def compare_logits(
    expected: Sequence[np.ndarray], computed: Sequence[np.ndarray], *, runtime: str, version: str, writes: bool
) -> Agreement:
    """Compare logits [T, V] or [V] of each text. writes: whether they choose the tokens of a text."""
    difference, same, total = 0.0, 0, 0
    for ours, theirs in zip(expected, computed, strict=True):
        difference = max(difference, float(np.abs(_log_softmax(ours) - _log_softmax(theirs)).max()))
        same += int((ours.argmax(-1) == theirs.argmax(-1)).sum())
        total += int(np.prod(ours.shape[:-1], dtype=int))
    return Agreement(runtime, version, "log-probabilities", difference, same if writes else 0, total if writes else 0)


def compare_outputs(
    expected: Sequence[np.ndarray], computed: Sequence[np.ndarray], *, runtime: str, version: str
) -> Agreement:
    """Compare numbers that are no logits, such as hidden states."""
    pairs = zip(expected, computed, strict=True)
    difference = max(float(np.abs(ours - theirs).max()) for ours, theirs in pairs)
    return Agreement(runtime, version, "outputs", difference, 0, 0)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
