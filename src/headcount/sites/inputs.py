"""A small batch that any located model can run: for self-tests, verification and counting. Knows configs, not heads."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError

Batch = dict[str, Tensor]


def example_batch(
    model: nn.Module, *, batch: int = 2, length: int = 12, target: int = 9, seed: int = 0, padded: bool = True
) -> Batch:
    """Random input of the model's own modality, with padding on the side the model uses.

    length: tokens of the input, where the modality lets them be chosen.
    target: tokens given to a decoder beside an encoder.
    """
    maker = _Maker(model, batch, length, seed)
    wanted = set(inspect.signature(model.forward).parameters)
    made: Batch = {}
    if "input_ids" in wanted:
        made["input_ids"] = maker.tokens(length)
        if "attention_mask" in wanted:
            made["attention_mask"] = maker.attention_mask(padded)
    if "pixel_values" in wanted:
        made["pixel_values"] = maker.image()
    if "input_features" in wanted:
        made["input_features"] = maker.speech_features()
    if "input_values" in wanted:
        made["input_values"] = maker.speech()
    if "decoder_input_ids" in wanted and getattr(maker.config, "is_encoder_decoder", False):
        made["decoder_input_ids"] = maker.tokens(target)
    if not made:
        raise ModelError(
            f"{type(model).__name__} takes none of input_ids, pixel_values, input_features, input_values, "
            "so headcount cannot make a test batch for it. Pass a batch of your own."
        )
    return {name: value.to(maker.device) for name, value in made.items()}


def longest(model: nn.Module, wanted: int) -> int:
    """As many tokens as wanted, or as many as the model has positions for."""
    config = getattr(model, "config", None)
    names = ("max_position_embeddings", "n_positions", "max_target_positions")
    limits = [int(getattr(part, name)) for part in _configs(config) for name in names if getattr(part, name, None)]
    taken = [  # RoBERTa counts positions from the one after its padding index
        module.padding_idx + 1
        for name, module in model.named_modules()
        if "position" in name and isinstance(module, nn.Embedding) and module.padding_idx is not None
    ]
    return max(1, min([wanted, *(limit - max(taken, default=0) for limit in limits)]))


def _configs(config: Any) -> list[Any]:
    """The config, and those of the towers it is made of."""
    return [config, *(getattr(config, part, None) for part in ("text_config", "vision_config", "encoder"))]


class _Maker:
    """Makes the parts of one batch from one seeded generator."""

    def __init__(self, model: nn.Module, batch: int, length: int, seed: int) -> None:
        self.config = getattr(model, "config", None)
        self.batch = batch
        self.length = length
        self._random = torch.Generator().manual_seed(seed)
        weights = next(model.parameters())
        self.device = weights.device
        self._dtype = weights.dtype if weights.dtype.is_floating_point else torch.float32

    def _get(self, *names: str, default: Any = None) -> Any:
        """The first of these entries in the config or in one of its towers' configs."""
        for config in _configs(self.config):
            for name in names:
                if getattr(config, name, None) is not None:
                    return getattr(config, name)
        return default

    def tokens(self, length: int) -> Tensor:
        vocabulary = int(self._get("vocab_size", default=32))
        special = {
            self._get(name) for name in ("pad_token_id", "eos_token_id", "bos_token_id", "decoder_start_token_id")
        }
        ordinary = torch.tensor([i for i in range(min(vocabulary, 1000)) if i not in special])
        places = torch.randint(len(ordinary), (self.batch, length), generator=self._random)
        return ordinary[places]

    def attention_mask(self, padded: bool) -> Tensor:
        mask = torch.ones(self.batch, self.length, dtype=torch.long)
        if padded:
            pads = max(1, self.length // 4)
            mask[-1, slice(0, pads) if self._pads_left() else slice(self.length - pads, None)] = 0
        return mask

    def _pads_left(self) -> bool:
        """Models that go on writing after their input must have its end at the right."""
        names = " ".join(self._get("architectures", default=None) or [])
        encoder_decoder = getattr(self.config, "is_encoder_decoder", False)
        return not encoder_decoder and ("CausalLM" in names or "LMHead" in names or bool(self._get("is_decoder")))

    def image(self) -> Tensor:
        size = self._get("image_size", default=224)
        height, width = (size, size) if isinstance(size, int) else size
        return self._noise(self.batch, int(self._get("num_channels", default=3)), height, width)

    def speech_features(self) -> Tensor:
        frames = 2 * int(self._get("max_source_positions", default=self.length))  # Whisper halves them by a convolution
        return self._noise(self.batch, int(self._get("num_mel_bins", default=80)), frames)

    def speech(self) -> Tensor:
        stride = 1
        for step in self._get("conv_stride", default=[320]):
            stride *= step
        return self._noise(self.batch, stride * (self.length + 2))

    def _noise(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._random).to(self._dtype)
