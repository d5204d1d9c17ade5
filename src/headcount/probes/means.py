"""Mean head outputs over a set of batches: what stands in for a head under mean replacement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.hooks import original_module
from headcount.probes.taps import tapped
from headcount.sites.running import evaluating
from headcount.sites.site import Site


def mean_outputs(model: nn.Module, batches: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], Tensor]:
    """Each head's mean output over all tokens that are not padding: site -> [H, D], summed in float64."""
    sums: dict[tuple[str, int], Tensor] = {}
    tokens: dict[tuple[str, int], float] = {}
    batch: Mapping[str, Any] = {}
    encoder_decoder = bool(getattr(getattr(original_module(model), "config", None), "is_encoder_decoder", False))

    def add(site: Site, context_BTHD: Tensor) -> None:
        real_BT = _real_tokens(site, context_BTHD, batch, encoder_decoder).to(context_BTHD.device)
        total_HD = (context_BTHD.double() * real_BT[..., None, None]).flatten(0, -3).sum(0)
        sums[site.key] = sums.get(site.key, torch.zeros_like(total_HD)) + total_HD
        tokens[site.key] = tokens.get(site.key, 0.0) + float(real_BT.sum())

    with evaluating(model), tapped(model, "outputs", sink=add):
        for batch in batches:
            model(**batch)
    if not sums:
        raise UsageError("The calibration set is empty: mean outputs need at least one batch.")
    return {key: total_HD / tokens[key] for key, total_HD in sums.items()}


def _real_tokens(site: Site, context_BTHD: Tensor, batch: Mapping[str, Any], encoder_decoder: bool) -> Tensor:
    """[B, T]: 1 for tokens, 0 for padding, as far as the batch says."""
    of_target = encoder_decoder and site.kind in ("decoder", "cross")
    mask = batch.get("decoder_attention_mask" if of_target else "attention_mask")
    if mask is None and of_target and batch.get("labels") is not None:
        mask = batch["labels"] != -100
    shape = context_BTHD.shape[:-2]
    if mask is None or mask.shape != shape:  # images, speech after convolutions: every position counts
        return torch.ones(shape, dtype=torch.float64, device=context_BTHD.device)
    real_BT: Tensor = mask.double()
    return real_BT
