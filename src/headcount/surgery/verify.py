"""verify: does the pruned model do what the masked model did? Compares outputs and generated text on a small batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationMixin

from headcount.errors import VerificationError
from headcount.heads import HeadGrid
from headcount.probes.masks import masked
from headcount.probes.projections import projected
from headcount.sites.inputs import example_batch
from headcount.sites.running import evaluating, run
from headcount.surgery.compensate import Compensation

# Largest difference allowed, as a share of the largest value: what another order of summation may cost.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}
T5_TOLERANCE = 5e-5  # float32; unscaled scores and large logits
_NEW_TOKENS = 6
_SKIPPED = ("past_key_values", "hidden_states", "attentions", "loss")


@dataclass(frozen=True)
class Behaviour:
    """What a model did on a batch: its outputs by name, and greedy text with the logits of every step."""

    outputs: Mapping[str, Tensor]
    tokens: Tensor | None  # [B, steps]
    steps: tuple[Tensor, ...]  # of logits [B, V]


def verify(
    model: nn.Module,
    small: nn.Module,
    mask: HeadGrid,
    *,
    batch: Mapping[str, Any] | None = None,
    compensation: Compensation | None = None,
) -> float:
    """Compare a model under a mask with its pruned version, on a batch of yours or a made-up one.

    compensation: what was folded into the pruned model; the masked one then runs with it attached.
    Returns the largest difference of their outputs and of the logits behind their greedy text, as a share of the
    largest value; raises VerificationError where it is more than another order of summation explains.
    """
    with masked(model, mask), projected(model, compensation.projections if compensation else {}):
        expected = observe(model, batch)
    return compare(expected, observe(small, batch), default_tolerance(small))


def observe(model: nn.Module, batch: Mapping[str, Any] | None = None, *, generate: bool = True) -> Behaviour:
    """Run a model in eval mode on a batch (made up if none is given), leaving it as it was."""
    made_up = batch is None
    batch = example_batch(model) if batch is None else batch
    with evaluating(model):
        outputs = _tensors(run(model, batch, made_up=made_up))
        tokens, steps = _generate(model, batch) if generate and made_up and _can_generate(model) else (None, ())
    return Behaviour(outputs, tokens, steps)


def compare(expected: Behaviour, found: Behaviour, tolerance: float) -> float:
    """The largest relative difference; more than the tolerance raises. Text may differ only where two tokens tie."""
    worst = 0.0
    for name, output in expected.outputs.items():
        worst = max(worst, _difference(output, found.outputs[name], tolerance, name))
    if expected.tokens is None or found.tokens is None:
        return worst
    start = expected.tokens.shape[1] - len(expected.steps)
    same = torch.ones(len(expected.tokens), dtype=torch.bool, device=expected.tokens.device)  # rows that agree so far
    for step, (logits, others) in enumerate(zip(expected.steps, found.steps, strict=True)):
        if not same.any():
            break
        worst = max(worst, _difference(logits[same], others[same], tolerance, f"logits of generated token {step}"))
        same &= expected.tokens[:, start + step] == found.tokens[:, start + step]
    return worst


def default_tolerance(model: nn.Module) -> float:
    dtype = next(
        (parameter.dtype for parameter in model.parameters() if parameter.dtype.is_floating_point), torch.float32
    )
    if dtype is torch.float32 and any("T5" in type(module).__name__ for module in model.modules()):
        return T5_TOLERANCE
    return TOLERANCE.get(dtype, TOLERANCE[torch.float32])


def _difference(expected: Tensor, found: Tensor, tolerance: float, name: str) -> float:
    if expected.shape != found.shape:
        raise VerificationError(
            f"{name}: the pruned model gives shape {list(found.shape)}, the masked {list(expected.shape)}."
        )
    finite = expected.isfinite()  # a query that may look at nothing can give NaN: in both models, or it is an error
    if not torch.equal(finite, found.isfinite()):
        raise VerificationError(f"{name}: masked and pruned model give infinite values in different places.")
    if not finite.any():
        return 0.0
    expected, found = expected[finite], found[finite]
    scale = expected.abs().max().clamp_min(torch.finfo(expected.dtype).tiny)
    difference = float((expected - found).abs().max() / scale)
    if not difference <= tolerance:
        raise VerificationError(
            f"{name}: pruned and masked model differ by {difference:.2g} of the largest value, more than "
            f"{tolerance:.2g}. If the mask is the one the model was pruned by, the architecture needs a description of "
            "its own: docs/how-to/add-a-family.md."
        )
    return difference


def _tensors(outputs: Any) -> dict[str, Tensor]:
    items = (
        outputs.items()
        if isinstance(outputs, Mapping)
        else enumerate(outputs if isinstance(outputs, tuple) else (outputs,))
    )
    return {
        str(name): value
        for name, value in items
        if isinstance(value, Tensor) and value.is_floating_point() and not any(part in str(name) for part in _SKIPPED)
    }


def _can_generate(model: Any) -> bool:
    if not isinstance(model, GenerationMixin) or not model.can_generate():
        return False
    settings = model.generation_config
    starts = settings.decoder_start_token_id is not None or settings.bos_token_id is not None
    return starts or not model.config.is_encoder_decoder


def _generate(model: Any, batch: Mapping[str, Any]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Greedy text, by the general `generate` (Whisper's own wants real speech)."""
    settings = copy.deepcopy(model.generation_config)
    settings.update(
        max_length=None, max_new_tokens=_NEW_TOKENS, min_new_tokens=_NEW_TOKENS, do_sample=False, num_beams=1
    )
    settings.update(
        return_dict_in_generate=True, output_logits=True, forced_bos_token_id=None, forced_eos_token_id=None
    )
    if settings.pad_token_id is None:
        settings.pad_token_id = 0
    prompt = {
        name: value for name, value in batch.items() if name not in ("decoder_input_ids", "encoder_hidden_states")
    }
    made = GenerationMixin.generate(model, **prompt, generation_config=settings)
    return made.sequences, tuple(made.logits)
