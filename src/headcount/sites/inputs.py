"""A small batch that any located model can run: for self-tests, verification and counting. Knows configs, not heads."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from headcount.errors import ModelError
from headcount.hooks import config_of
from headcount.sites.devices import compute_device

Batch = dict[str, Tensor]
_PARTS = ("text_config", "vision_config", "encoder", "decoder")
_CROSS = ("encoder_attn", "crossattention")
_TABLES = ("position_embeddings", "position_embedding", "embed_positions", "wpe")


def example_batch(
    model: nn.Module, *, batch: int = 2, length: int = 12, target: int = 9, seed: int = 0, padded: bool = True
) -> Batch:
    """Random input of the model's modality, padded on the side that the model uses.

    length: tokens of the input, if the modality allows a choice.
    target: tokens given to a decoder beside an encoder.
    """
    maker = _Maker(model, batch, length, seed)
    parameters = set(inspect.signature(model.forward).parameters)
    example: Batch = {}
    if "input_ids" in parameters:
        example |= maker.text(length, padded=padded)
    if "pixel_values" in parameters and not (
        "input_ids" in parameters and maker.writes
    ):  # the text of such a model would need image tokens
        example["pixel_values"] = maker.image()
    if "input_features" in parameters:
        example["input_features"] = maker.speech_features()
    if "input_values" in parameters:
        example["input_values"] = maker.speech()
    if "decoder_input_ids" in parameters and maker.needs_target:
        example["decoder_input_ids"] = maker.tokens(target)
    if "encoder_hidden_states" in parameters and maker.looks_elsewhere:
        example["encoder_hidden_states"] = maker.states()
    if not example and hasattr(model, "merge_and_unload"):
        raise ModelError(
            f"{type(model).__name__} is a model with adapters (PEFT), which headcount has no test batch for: call "
            "model.merge_and_unload() and use the model that it returns, or pass a batch of your own with batch=."
        )
    if not example:
        raise ModelError(
            f"{type(model).__name__} takes none of input_ids, pixel_values, input_features, input_values, "
            "so headcount cannot make a test batch for it. Pass a batch of your own with batch=."
        )
    return {name: value.to(maker.device) for name, value in example.items() if name in parameters}


def longest(model: nn.Module, length: int) -> int:
    """The requested number of tokens, or the number of positions of the model if that is smaller."""
    config = config_of(model)
    names = ("max_position_embeddings", "n_positions", "max_target_positions")
    limits = [int(getattr(part, name)) for part in _configs(config) for name in names if getattr(part, name, None)]
    table = position_limit(model)
    return max(1, min([length, *limits, *([table] if table is not None else [])]))


def position_limit(model: nn.Module) -> int | None:
    """Longest input of the model in tokens; None if positions are computed, not looked up in a table."""
    sizes = [table.num_embeddings - _first_row(table) for table in _position_tables(model)]
    for path, module in model.named_modules():
        tables = [table for name, table in module._buffers.items() if _counts_tokens(f"{path}.{name}")]
        sizes += [len(table) for table in tables if table is not None]  # GPT-J: its sinusoids
    return min(sizes, default=None)


def first_position(model: nn.Module) -> int:
    """The position id of the first token. It is 0 unless positions start after a padding index, as in RoBERTa."""
    tables = [table for table in _position_tables(model) if not hasattr(table, "offset")]  # OPT adds its offset itself
    return max(map(_first_row, tables), default=0)


def _position_tables(model: nn.Module) -> list[nn.Embedding]:
    modules = model.named_modules()
    return [module for path, module in modules if isinstance(module, nn.Embedding) and _counts_tokens(path)]


def _counts_tokens(name: str) -> bool:
    """Whether a module or buffer of this name is a table of positions in text."""
    *parents, leaf = name.split(".")
    return leaf in _TABLES and not any(parent.startswith("vision") for parent in parents)


def _first_row(table: nn.Embedding) -> int:
    """The row of the first token: OPT and BART have an offset, RoBERTa starts after its padding index."""
    after_padding = 0 if table.padding_idx is None else table.padding_idx + 1
    return int(getattr(table, "offset", after_padding))


def _configs(config: PreTrainedConfig) -> list[Any]:
    """The config, and those of the parts it is made of."""
    return [config, *(getattr(config, part, None) for part in _PARTS)]


class _Maker:
    """Makes the parts of one batch from one seeded generator."""

    def __init__(self, model: nn.Module, batch: int, length: int, seed: int) -> None:
        self.config = config_of(model)
        self.batch = batch
        self.length = length
        self._random = torch.Generator().manual_seed(seed)
        weights = next(model.parameters())
        self.device = compute_device(model)
        self._dtype = weights.dtype if weights.dtype.is_floating_point else torch.float32
        self._class = type(model).__name__
        both = bool(getattr(self.config, "is_encoder_decoder", False))
        self._one_label = self._class.endswith("ForSequenceClassification")
        self.writes = hasattr(model, "can_generate") and bool(model.can_generate())  # type: ignore[operator]
        self.needs_target = both and not self._one_label  # classifiers derive the target from the source
        self.looks_elsewhere = not both and any(name.endswith(_CROSS) for name, _ in model.named_modules())
        self._pads_left = not both and (self.writes or bool(self._get("is_decoder")))
        self._ends_in_eos = both and self._one_label  # BART classifies at the end of the sentence
        if self._one_label and self._get("pad_token_id") is None:  # decoders then know one sentence's end only
            self.batch = 1

    def _get(self, *names: str, default: object = None) -> Any:
        """The first of these entries in the config or in the config of one of its parts."""
        for config in _configs(self.config):
            for name in names:
                if getattr(config, name, None) is not None:
                    return getattr(config, name)
        return default

    def text(self, length: int, *, padded: bool) -> Batch:
        tokens, mask = self.tokens(length), torch.ones(self.batch, length, dtype=torch.long)
        pads = max(1, length // 4) if padded and self.batch > 1 else 0
        if pads:
            mask[-1, slice(0, pads) if self._pads_left else slice(length - pads, None)] = 0
        if self._ends_in_eos:
            tokens.scatter_(1, mask.sum(1, keepdim=True) - 1, int(self._get("eos_token_id", default=2)))
        batch = {"input_ids": tokens, "attention_mask": mask}
        if self._class.endswith("ForMultipleChoice"):  # [B, choices, T]
            batch = {name: value[:, None].repeat(1, 2, 1) for name, value in batch.items()}
        return batch

    def tokens(self, length: int) -> Tensor:
        vocabulary = int(self._get("vocab_size", default=32))
        names = ("pad_token_id", "eos_token_id", "bos_token_id", "decoder_start_token_id", "image_token_id")
        special = {self._get(name) for name in names if not isinstance(self._get(name), list)}
        ordinary = torch.tensor([i for i in range(min(vocabulary, 1000)) if i not in special])
        places = torch.randint(len(ordinary), (self.batch, length), generator=self._random)
        return ordinary[places]

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

    def states(self) -> Tensor:
        """Encoder states for the cross-attention of a decoder without its encoder."""
        width = self._get("cross_attention_hidden_size", "hidden_size", "d_model", "n_embd")
        return self._noise(self.batch, 7, int(width))

    def _noise(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._random).to(self._dtype)
