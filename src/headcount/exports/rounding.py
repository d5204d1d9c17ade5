"""Rounding: how much the rounding of numbers alone changes what a model computes, measured in PyTorch.

It bounds the check of an export: what differs by far more than rounding explains is a fault.
Shape suffixes: T tokens, V words of the vocabulary or classes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor
from transformers import PreTrainedModel

from headcount.exports.agreement import TEXTS
from headcount.exports.runtime import ExportedModel
from headcount.sites.inputs import example_batch, longest
from headcount.sites.running import evaluating

FACTOR = 10  # other orders of summation, and activations that are rounded too
_SMALLEST = 1e-5  # of a difference that a few texts can tell from none
_BLOCK = 32  # numbers that share a scale in q8_0
_LENGTH = 24


def explained(subject: ExportedModel, dtype: str) -> float:
    """The largest difference that a number format explains: a multiple of what its rounding does to the model.

    float32 is compared with float64, smaller formats with weights that are rounded to them.
    """
    twin = copy.deepcopy(subject.model)
    with torch.no_grad():
        if dtype == "f32":
            twin.double()
        else:
            for parameter in twin.parameters():
                if parameter.dim() > 1 and parameter.numel():  # a layer without heads has empty weights
                    parameter.copy_(ROUNDED[dtype](parameter))
    batches = _batches(subject)
    differences = [float((_outputs(subject.model, ids) - _outputs(twin, ids)).abs().max()) for ids in batches]
    return FACTOR * max(_SMALLEST, *differences)


def _eight_bits(weight: Tensor) -> Tensor:
    """One scale for all."""
    scale = weight.abs().max().clamp(min=torch.finfo(weight.dtype).tiny) / 127
    return (weight / scale).round() * scale


def _blocks_of_eight_bits(weight: Tensor) -> Tensor:
    """One scale for each block of a row; rows that no block fills stay in sixteen bits."""
    if weight.shape[-1] % _BLOCK:
        return weight.half().float()
    blocks = weight.unflatten(-1, (-1, _BLOCK))
    scale = blocks.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny) / 127
    return ((blocks / scale).round() * scale).flatten(-2)


ROUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    "f16": lambda weight: weight.half().float(),
    "bf16": lambda weight: weight.bfloat16().float(),
    "q8_0": _blocks_of_eight_bits,
    "int8": _eight_bits,
}


def _outputs(model: PreTrainedModel, batch: dict[str, Tensor]) -> Tensor:
    """Log-probabilities [T, V] of logits, or the states of the last layer."""
    with evaluating(model):
        result = model(**batch)
    if getattr(result, "logits", None) is None:
        return result.last_hidden_state.double()
    return torch.log_softmax(result.logits.double(), dim=-1)


def _batches(subject: ExportedModel) -> list[dict[str, Tensor]]:
    """Single texts: nothing is padded."""
    model, tokenizer = subject.model, subject.tokenizer
    length = longest(model, _LENGTH)
    made_up = [example_batch(model, batch=2, length=length, target=length, padded=False, seed=seed) for seed in (1, 2)]
    if tokenizer is None:
        return made_up
    texts = [torch.tensor([list(tokenizer(text).input_ids)[:length]]) for text in TEXTS]
    target = {name: tensor[:1] for name, tensor in made_up[0].items() if name == "decoder_input_ids"}
    return [*made_up, *({"input_ids": ids, **target} for ids in texts)]
