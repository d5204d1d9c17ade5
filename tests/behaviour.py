"""What the tests compare: a model's outputs, its text, its hooks, its weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationMixin

from headcount.sites.inputs import example_batch
from headcount.sites.site import Sites
from headcount.surgery.verify import Behaviour, observe


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


__all__ = ["Behaviour", "generates", "hooks", "identical", "layer", "observe", "outputs", "text", "uneven", "weights"]
