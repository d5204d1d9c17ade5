"""Estimate in PyTorch how much rounding to a number format changes the outputs of a model.

The estimate is the tolerance for checking an export: a larger difference is an error.
Shape suffixes: T tokens, V vocabulary entries or classes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from headcount.exports.agreement import TEXTS, largest_difference
from headcount.exports.graphs.check import check_batches, first_outputs
from headcount.exports.runtime import ExportedModel
from headcount.sites.inputs import example_batch, longest
from headcount.sites.running import evaluating

FACTOR = 10  # allows for other orders of summation and for rounded activations
_SMALLEST = 1e-5  # lower bound of the measured difference: a few texts cannot resolve less
_BLOCK = 32  # weights that share a scale in q8_0
_LENGTH = 24


def explained(subject: ExportedModel, dtype: str) -> float:
    """Return the tolerance for a number format: a multiple of the difference that rounding alone causes.

    For float32 the model is compared with its float64 copy, for smaller formats with a copy that has rounded weights.
    It is infinite if rounding makes outputs NaN or infinite: then the format does not suit the model.
    """
    twin = copy.deepcopy(subject.model)
    with torch.no_grad():
        if dtype == "f32":
            twin.double()
        else:
            for parameter in twin.parameters():
                if parameter.dim() > 1 and parameter.numel():  # a layer without heads has empty weights
                    parameter.copy_(ROUNDED[dtype](parameter))
    return FACTOR * max(_SMALLEST, largest_difference(_pairs(subject, twin)))


def _pairs(subject: ExportedModel, twin: PreTrainedModel) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the outputs of the model and of its rounded copy."""
    for batch in _batches(subject):
        yield _outputs(subject.model, batch), _outputs(twin, batch)
    for batch in check_batches(subject):  # what rounding does depends on the tokens: random ones may be sensitive
        for text in _texts(batch):
            yield first_outputs(subject.model, text), first_outputs(twin, text)


def _texts(batch: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """Yield each text of a batch without padding: eager attention in float64 gives NaN for a query without keys."""
    for row, real_T in enumerate(batch["attention_mask"].bool()):
        text = {name: tensor[row : row + 1] for name, tensor in batch.items()}
        yield text | {name: text[name][:, real_T] for name in ("input_ids", "attention_mask")}


def _eight_bits(weight: Tensor) -> Tensor:
    """Round to 8 bits with one scale for the whole tensor."""
    scale = weight.abs().max().clamp(min=torch.finfo(weight.dtype).tiny) / 127
    return (weight / scale).round() * scale


def _blocks_of_eight_bits(weight: Tensor) -> Tensor:
    """Round to 8 bits with one scale per block; if blocks do not divide the rows evenly, round to float16."""
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


def _outputs(model: PreTrainedModel, batch: dict[str, Tensor]) -> np.ndarray:
    """Return log-probabilities [T, V] if the model has logits, otherwise the last hidden states."""
    with evaluating(model):
        result = model(**batch)
    if getattr(result, "logits", None) is None:
        return np.asarray(result.last_hidden_state.double())
    return np.asarray(torch.log_softmax(result.logits.double(), dim=-1))


def _batches(subject: ExportedModel) -> list[dict[str, Tensor]]:
    """Return batches without padding: random token ids and, if there is a tokenizer, real texts."""
    model, tokenizer = subject.model, subject.tokenizer
    length = longest(model, _LENGTH)
    made_up = [example_batch(model, batch=2, length=length, target=length, padded=False, seed=seed) for seed in (1, 2)]
    if tokenizer is None:
        return made_up
    texts = [torch.tensor([list(tokenizer(text).input_ids)[:length]]) for text in TEXTS]
    target = {name: tensor[:1] for name, tensor in made_up[0].items() if name == "decoder_input_ids"}
    return [*made_up, *({"input_ids": ids, **target} for ids in texts)]
