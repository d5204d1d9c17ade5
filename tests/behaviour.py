"""What the tests compare: a model's outputs, its text, its hooks, its weights."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationMixin

from headcount.sites.inputs import example_batch
from headcount.sites.site import Sites
from headcount.surgery.exercise import exercise
from headcount.surgery.trace import tensors_of

# Largest difference of two tiny models, as a share of the largest value: what another order of summation costs.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}
T5_TOLERANCE = 5e-5  # float32; unscaled scores and large logits


@dataclass(frozen=True)
class Behaviour:
    """What a model did on a batch: its outputs by name, and greedy text with the logits of every step."""

    outputs: Mapping[str, Tensor]
    tokens: Tensor | None  # [B, steps]
    steps: tuple[Tensor, ...]  # of logits [B, V]


def observe(model: nn.Module, batch: Mapping[str, Any] | None = None, *, generate: bool = True) -> Behaviour:
    returned, text = exercise(model, batch, generate=generate)
    tokens, steps = (None, ()) if text is None else (text.sequences, tuple(text.logits))
    return Behaviour(tensors_of(returned), tokens, steps)


def difference(expected: Behaviour, found: Behaviour) -> float:
    """From end to end, as a share of the largest value; the text counts up to where two tokens tie."""
    worst = max(_difference(output, found.outputs[name]) for name, output in expected.outputs.items())
    if expected.tokens is None or found.tokens is None:
        return worst
    start = expected.tokens.shape[1] - len(expected.steps)
    same = torch.ones(len(expected.tokens), dtype=torch.bool)  # rows that agree so far
    for step, (logits, others) in enumerate(zip(expected.steps, found.steps, strict=True)):
        if not same.any():
            break
        worst = max(worst, _difference(logits[same], others[same]))
        same &= expected.tokens[:, start + step] == found.tokens[:, start + step]
    return worst


def _difference(expected: Tensor, found: Tensor) -> float:
    finite = expected.isfinite()
    assert torch.equal(finite, found.isfinite())
    if not finite.any():
        return 0.0
    scale = expected[finite].abs().max().clamp_min(torch.finfo(expected.dtype).tiny)
    return float((expected[finite] - found[finite]).abs().max() / scale)


def tolerance(model: nn.Module) -> float:
    dtype = next(model.parameters()).dtype
    if dtype is torch.float32 and any("T5" in type(module).__name__ for module in model.modules()):
        return T5_TOLERANCE
    return TOLERANCE[dtype]


def outputs(model: nn.Module, batch: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
    return dict(observe(model, batch or example_batch(model), generate=False).outputs)


def identical(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def text(model: Any, *, beams: int) -> Tensor:
    """Tokens by greedy (1) or beam search, from a batch padded on the side the model uses."""
    batch = {name: value for name, value in example_batch(model).items() if name != "decoder_input_ids"}
    settings = copy.deepcopy(model.generation_config)
    settings.update(
        max_length=None, max_new_tokens=6, min_new_tokens=6, num_beams=beams, do_sample=False, pad_token_id=0
    )
    settings.update(forced_bos_token_id=None, forced_eos_token_id=None)
    return GenerationMixin.generate(model, **batch, generation_config=settings)


def generates(model: Any) -> bool:
    return isinstance(model, GenerationMixin) and model.can_generate()


def hooks(model: nn.Module) -> int:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(module, kind)) for module in model.modules() for kind in kinds)


def uneven(sites: Sites) -> list[str]:
    """Heads to take out so that neighbouring layers keep different numbers and different heads."""
    pattern = {0: (0, 3), 1: (2,), 2: (0, 1, 3)}
    return [str(head) for head in sites.heads if head.index in pattern[head.layer % 3]]


def layer(sites: Sites, number: int) -> list[str]:
    return [str(head) for head in sites.heads if head.layer == number]


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}
