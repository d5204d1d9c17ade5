"""Inputs: what the model was given in the run that is under way, whatever the batch of the task calls it.

A loss function may make masks itself, tokenise texts, or run the model several times. The arguments of each run decide
which positions are padding; the batch adds what the run does not show, such as a mask that only the loss uses.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headcount.hooks import Hooks, configured_module, is_encoder_decoder, uncompiled
from headcount.probes.padding import CACHED

_CONTENTS = ("input_ids", "decoder_input_ids", "input_values", "input_features")  # texts and sounds
_PREFIX_OF_TARGET = "decoder_"


class Inputs:
    """The inputs of the present run by name. Outside of a run those of the batch."""

    def __init__(self) -> None:
        self._batch: dict[str, Any] = {}
        self._open: list[tuple[nn.Module, dict[str, Any]]] = []  # parts that run now, the innermost last

    def begin(self, batch: Any) -> None:
        """Set the batch that runs are about to read."""
        self._batch = _tensors(batch) if isinstance(batch, Mapping) else {}
        self._open = []

    @property
    def now(self) -> Mapping[str, Any]:
        """By name, tensors and the number of tokens that are cached."""
        return self._open[-1][1] if self._open else self._batch

    def enter(self, part: nn.Module, arguments: Mapping[str, Any]) -> None:
        """Note the arguments of a part of the model that begins to run."""
        self.leave(part)
        inputs: dict[str, Any] = _tensors(arguments)
        cache: Any = arguments.get("past_key_values")
        if self._open:  # the model makes the input of its decoder of what it was given itself
            inputs = {name: value for name, value in inputs.items() if not name.startswith(_PREFIX_OF_TARGET)}
        if cache is not None and hasattr(cache, "get_seq_length"):
            inputs[CACHED] = int(cache.get_seq_length())
        self._open.append((part, _merged(self.now, inputs)))

    def leave(self, part: nn.Module) -> None:
        """Forget a part that has run, and parts inside it that ended in an exception."""
        positions = [position for position, (other, _) in enumerate(self._open) if other is part]
        if positions:
            del self._open[positions[0] :]


@contextmanager
def inputs_of(model: nn.Module) -> Iterator[Inputs]:
    """Follow what the model is given in each run inside the block."""
    inputs = Inputs()
    with Hooks(model) as hooks:
        for part in _parts(model):
            hooks.see_arguments(part, uncompiled(partial(inputs.enter, part)))
            hooks.see_end(part, uncompiled(partial(inputs.leave, part)))
        yield inputs


def _parts(model: nn.Module) -> Iterator[nn.Module]:
    """The models within a model that read texts or sounds.

    Not the decoder of an encoder-decoder: it calls the target input_ids, which are the source elsewhere.
    """
    outer: Any = configured_module(model)
    decoder = outer.get_decoder() if is_encoder_decoder(model) and hasattr(outer, "get_decoder") else None
    left_out = set() if decoder is None or decoder is outer else set(decoder.modules())
    for part in model.modules():
        if part not in left_out and getattr(part, "config", None) is not None:
            names = {"input_ids", getattr(part, "main_input_name", None)}
            if names & set(inspect.signature(part.forward).parameters):
                yield part


def _tensors(named: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in named.items() if isinstance(value, Tensor)}


def _merged(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """What an inner part is given, and what the outer one was given besides, unless that is about another text."""
    if _of_another_text(outer, inner):
        return dict(inner)
    merged, mask = {**outer, **inner}, outer.get("attention_mask")
    if mask is not None and mask.dim() < merged["attention_mask"].dim():  # the model made one per query and key of it
        merged["attention_mask"] = mask
    return merged


def _of_another_text(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> bool:
    if any(not _same(outer[name], inner[name]) for name in _CONTENTS if name in outer and name in inner):
        return True
    labels, read = outer.get("labels"), inner.get("decoder_input_ids")
    return labels is not None and labels.dim() == 2 and read is not None and read.shape != labels.shape


def _same(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors have the same rows; the choices of multiple choice become rows inside the model."""
    if left is right:
        return True
    if left.dim() == 3 and right.dim() == 2:
        left = left.flatten(0, 1)
    return left.shape == right.shape and torch.equal(left.to(right.device), right)
