"""Padding: which positions of a site hold real tokens, according to the inputs of the model.

Shapes: B rows of the model (examples, or their choices), T positions, Q queries, K keys.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from headcount.hooks import config_of, configured_module, original_module
from headcount.sites.sides import of_target, of_text
from headcount.sites.site import Site

CACHED = "cached"  # number of tokens that the model keeps of earlier runs: a mask names them before those of this run

_NOT_ATTENDED = -1000.0  # added to a score, it leaves a weight of 0: exp(-1000) is 0 in float64 too


def real_tokens(model: nn.Module, site: Site, context_BTHD: Tensor, inputs: Mapping[str, Any]) -> Tensor:
    """[B, T]: 1 for tokens, 0 for padding. For the decoder of an encoder-decoder, target tokens.

    inputs: what the model was given in this run, see `inputs_of`.
    """
    shape = context_BTHD.shape[:-2]
    real_BT = placed(model, query_mask(model, site, inputs, shape), shape, cached=inputs.get(CACHED, 0))
    return real_BT.to(context_BTHD.device, torch.float64)


def query_mask(model: nn.Module, site: Site, batch: Mapping[str, Tensor], shape: Sequence[int]) -> Tensor | None:
    """[B, T] bool: which queries of a site of this shape are not padding; None if the batch does not say."""
    if of_target(model, site):
        return target_mask(model, batch, shape)
    return source_mask(batch) if of_text(site) else None


def source_mask(batch: Mapping[str, Tensor]) -> Tensor | None:
    """[B, T] bool: which tokens of the input are not padding; None if the batch does not say."""
    return _by_row(batch.get("attention_mask"), batch.get("input_ids"))


def states_mask(batch: Mapping[str, Tensor]) -> Tensor | None:
    """[B, T] bool: which states of another model, given to a decoder, are not padding; None if it does not say."""
    return _by_row(batch.get("encoder_attention_mask"), None)


def target_mask(model: nn.Module, batch: Mapping[str, Tensor], shape: Sequence[int]) -> Tensor | None:
    """[B, T] bool: which tokens that a decoder of this shape reads are not padding; None if the batch does not say.

    A prompt is read, although its labels are -100 too. Without a target the decoder reads the source, as in BART's
    classifiers.
    """
    if batch.get("decoder_attention_mask") is not None:
        return _by_row(batch["decoder_attention_mask"], batch.get("decoder_input_ids"))
    labels_BT = target_labels(model, batch, shape)
    if labels_BT is not None:
        return _but_end(labels_BT != -100)
    if batch.get("decoder_input_ids") is not None:
        return before_padding(batch["decoder_input_ids"], config_of(model))
    given_BT = source_mask(batch)
    return before_padding(batch.get("input_ids"), config_of(model)) if given_BT is None else given_BT


def target_labels(model: nn.Module, batch: Mapping[str, Tensor], shape: Sequence[int]) -> Tensor | None:
    """[B, T]: the labels of a batch if they are the tokens of a target, not classes [B, 1] or [B, classes].

    Tokens are as many as the positions of the decoder, or have padding, whose place is then not known.
    """
    labels = batch.get("labels")
    if labels is None or labels.dim() != 2 or labels.is_floating_point():
        return None
    fits = labels.shape in (tuple(shape), (*shape[:-1], shape[-1] - virtual_tokens(model)))
    return labels if fits or bool((labels == -100).any()) else None


def before_padding(ids_BT: Tensor | None, config: object) -> Tensor | None:
    """[B, T]: all but the pad tokens at the end; None if there are no tokens, or the config names no pad token.

    The first token counts: T5 and Pegasus start with the pad token.
    """
    pad = getattr(config, "pad_token_id", None)
    if ids_BT is None or ids_BT.dim() != 2 or pad is None:
        return None
    real_BT = ids_BT != pad
    real_BT[:, :1] = True
    return _but_end(real_BT)  # a pad token before a real one is a token


def _but_end(real_BT: Tensor) -> Tensor:
    """[B, T] bool: all up to the last that is real."""
    return real_BT.flip(1).cummax(1).values.flip(1)


def placed(model: nn.Module, mask_BT: Tensor | None, shape: Sequence[int], *, cached: int = 0) -> Tensor:
    """[B, T] bool: a mask at the positions of a site of this shape. Warns if it has padding that cannot be placed.

    cached: number of tokens of earlier runs, which have no queries in this one.
    """
    if mask_BT is not None and mask_BT.shape == tuple(shape):
        return mask_BT
    if mask_BT is not None and cached and len(shape) == 2 and mask_BT.shape == (shape[0], cached + shape[1]):
        return mask_BT[:, cached:]
    device = torch.device("cpu") if mask_BT is None else mask_BT.device
    everywhere = torch.ones(tuple(shape), dtype=torch.bool, device=device)
    if mask_BT is None or bool(mask_BT.all()):  # images, or nothing is padded
        return everywhere
    if len(shape) == 2 and len(mask_BT) == shape[0]:
        before = virtual_tokens(model)
        if before and mask_BT.shape[1] + before == shape[1]:
            return torch.cat([everywhere[:, :before], mask_BT], dim=1)
        frames_BT = _frames(model, mask_BT, shape[1])
        if frames_BT is not None and frames_BT.shape == tuple(shape):
            return frames_BT
    warnings.warn(
        f"The attention mask of a batch has the shape {list(mask_BT.shape)} and attention of "
        f"{type(configured_module(model)).__name__} has {list(shape)} positions: headcount does not know which of them "
        "are padding, and counts all. Measure with batch_size=1, or with batches without padding.",
        stacklevel=2,
    )
    return everywhere


def virtual_tokens(model: nn.Module) -> int:
    """Number of learned tokens that PEFT puts before each text: prompt and prefix tuning."""
    settings = getattr(original_module(model), "active_peft_config", None)
    return int(getattr(settings, "num_virtual_tokens", None) or 0)


def _by_row(mask: Tensor | None, ids: Tensor | None) -> Tensor | None:
    """[B, T] bool from a mask per row, per choice [examples, choices, T], or per query and key [B, .., Q, K].

    A key that no query attends to is padding. A mask of floats per query and key is added to the scores: 0 attends,
    and numbers such as -10000, -1e9 or the smallest of the type do not.
    """
    if mask is None or mask.dim() < 2:
        return None
    if mask.dim() == 2 or (mask.dim() == 3 and ids is not None and ids.dim() == 3):
        return (mask != 0).flatten(0, -2)
    return attends(mask).flatten(1, -2).any(1)


def attends(mask: Tensor) -> Tensor:
    """Whether a mask per query and key lets attention be there, elementwise. One of floats is added to the scores."""
    return mask > _NOT_ATTENDED if mask.is_floating_point() else mask != 0


def _frames(model: nn.Module, mask_BT: Tensor, length: int) -> Tensor | None:
    """[B, length] bool: which frames of speech come from samples that are not padding; None for other models."""
    methods: Iterator[Any] = (getattr(part, "_get_feature_vector_attention_mask", None) for part in model.modules())
    method = next(filter(None, methods), None)
    if method is None:
        return None
    # an adapter shortens the output of the encoder, not its attention
    before = {"add_adapter": False} if "add_adapter" in inspect.signature(method).parameters else {}
    frames_BT: Tensor | None = method(length, mask_BT.long(), **before)
    return None if frames_BT is None else frames_BT != 0
