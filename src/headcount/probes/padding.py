"""Padding: which positions of a site hold real tokens, according to the batch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from headcount.hooks import is_encoder_decoder
from headcount.sites.site import Site


def real_tokens(model: nn.Module, site: Site, context_BTHD: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """[B, T]: 1 for tokens, 0 for padding. For the decoder of an encoder-decoder, target tokens."""
    of_target = is_encoder_decoder(model) and site.kind in ("decoder", "cross")
    mask = batch.get("decoder_attention_mask" if of_target else "attention_mask")
    if mask is None and of_target and batch.get("labels") is not None:
        mask = batch["labels"] != -100
    shape = context_BTHD.shape[:-2]
    if mask is None or mask.shape != shape:  # images, speech after convolutions: every position counts
        return torch.ones(shape, dtype=torch.float64, device=context_BTHD.device)
    return mask.to(context_BTHD.device, torch.float64)
