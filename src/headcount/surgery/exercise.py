"""exercise: run a model on a small batch as users do: forward pass, and greedy generation with a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from transformers import GenerationConfig, GenerationMixin, PreTrainedModel

from headcount.errors import ModelError
from headcount.sites.inputs import example_batch
from headcount.sites.running import evaluating, run

_NEW_TOKENS = 6
_OF_MODEL = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "use_cache")


def exercise(model: nn.Module, batch: Mapping[str, Tensor] | None = None, *, generate: bool = True) -> tuple[Any, Any]:
    """The output of the model, and of `generate` if it generates text. The model is not changed.

    batch: by default a synthetic one. Text is generated only from a synthetic batch: another may be no prompt.
    """
    synthetic = batch is None
    batch = example_batch(model) if batch is None else batch
    with evaluating(model):
        outputs = run(model, batch, synthetic=synthetic)
        text = _generate(model, batch) if generate and synthetic and _can_generate(model) else None
    return outputs, text


def _can_generate(model: PreTrainedModel) -> bool:
    if not isinstance(model, GenerationMixin) or not model.can_generate():
        return False
    settings = model.generation_config
    starts = settings.decoder_start_token_id is not None or settings.bos_token_id is not None
    return starts or not model.config.is_encoder_decoder


def _generate(model: PreTrainedModel, batch: Mapping[str, Tensor]) -> Any:
    """Greedy text, by the general `generate` (that of Whisper needs real speech)."""
    settings = GenerationConfig(
        **{name: getattr(model.generation_config, name) for name in _OF_MODEL}, do_sample=False, num_beams=1,
        max_new_tokens=_NEW_TOKENS, min_new_tokens=_NEW_TOKENS, return_dict_in_generate=True, output_logits=True,
    )  # fmt: skip
    if settings.pad_token_id is None:
        settings.pad_token_id = 0
    prompt = {
        name: value for name, value in batch.items() if name not in ("decoder_input_ids", "encoder_hidden_states")
    }
    with _generating_by(model, settings):
        try:
            return GenerationMixin.generate(model, **prompt, generation_config=settings)
        except Exception as error:
            raise ModelError(
                f"{type(model).__name__} does not generate text from the test batch that headcount generates "
                f"({type(error).__name__}: {error}). Pass a batch of your own with batch=, or do not compare: "
                "verify=False (--no-verify)."
            ) from error


@contextmanager
def _generating_by(model: PreTrainedModel, settings: GenerationConfig) -> Iterator[None]:
    """Replace the settings of a model inside the block: `generate` adds them to those that it is called with.

    They are for the user's prompts: several sequences need beams or sampling, an assistant a batch of one.
    """
    before = model.generation_config
    model.generation_config = settings
    try:
        yield
    finally:
        model.generation_config = before
