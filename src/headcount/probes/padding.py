"""Padding: which positions of a site hold real tokens, according to the batch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from headcount.hooks import config_of
from headcount.sites.sides import of_target
from headcount.sites.site import Site


def real_tokens(model: nn.Module, site: Site, context_BTHD: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """[B, T]: 1 for tokens, 0 for padding. For the decoder of an encoder-decoder, target tokens."""
    mask = _target_mask(model, batch) if of_target(model, site) else batch.get("attention_mask")
    shape = context_BTHD.shape[:-2]
    if mask is None or mask.shape != shape:  # images, speech after convolutions: every position counts
        return torch.ones(shape, dtype=torch.float64, device=context_BTHD.device)
    return mask.to(context_BTHD.device, torch.float64)


def _target_mask(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor | None:
    """[B, T]: which target tokens are not padding; None if the batch has no target."""
    if batch.get("decoder_attention_mask") is not None:
        return batch["decoder_attention_mask"]
    if batch.get("labels") is not None:
        return batch["labels"] != -100
    return before_padding(batch.get("decoder_input_ids"), config_of(model))


def before_padding(ids_BT: Tensor | None, config: object) -> Tensor | None:
    """[B, T]: all but the pad tokens at the end; None if there are no tokens, or the config names no pad token.

    The first token counts: T5 and Pegasus start with the pad token.
    """
    pad = getattr(config, "pad_token_id", None)
    if ids_BT is None or ids_BT.dim() != 2 or pad is None:
        return None
    real_BT = ids_BT != pad
    real_BT[:, :1] = True
    return real_BT.flip(1).cummax(1).values.flip(1)  # a pad token before a real one is a token
