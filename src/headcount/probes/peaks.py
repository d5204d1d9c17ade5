"""Peaks: where each query of each head looks most. A reduction of attention; knows neither tokens nor roles.

Shapes: B batch, H heads of a site, Q queries, K keys, S special keys of a sentence.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SAME = 1e-6  # weights that differ by less, relative to the larger, are tied: rounding must not make a maximum


class Peaks(NamedTuple):
    """The largest weight of each query among the keys that count, whose it is, and whether it is the only one."""

    weight_BHQ: Tensor
    place_BHQ: Tensor  # 0 where the maximum is tied
    alone_BHQ: Tensor  # bool: no other key has the same weight


def peaks(attention_BHQK: Tensor, keys_BK: Tensor, *, diagonal: bool = True) -> Peaks:
    """The maximum over the keys that count; weights are not renormalised, a tie for the maximum is no maximum.

    diagonal: whether the key at the query's own place counts.
    """
    weights_BHQK = attention_BHQK.float() * keys_BK[:, None, None]  # a copy: the model's own stays as it is
    if not diagonal:
        weights_BHQK.diagonal(dim1=-2, dim2=-1).zero_()
    return highest(weights_BHQK)


def highest(weights_BHQK: Tensor) -> Peaks:
    """Peaks of weights that are 0 wherever a key does not count. The leading dimensions may be any."""
    weight_BHQ = weights_BHQK.amax(-1)
    top_BHQK = (weights_BHQK >= (weight_BHQ * (1 - SAME))[..., None]).to(weights_BHQK.dtype)
    # How many keys are at the top, and the sum of their places: with one of them, its place. Faster than argmax.
    places_K = torch.arange(weights_BHQK.shape[-1], device=weights_BHQK.device, dtype=weights_BHQK.dtype)
    many_BHQ, place_BHQ = (top_BHQK @ torch.stack([torch.ones_like(places_K), places_K], -1)).unbind(-1)
    alone_BHQ = (many_BHQ == 1) & (weight_BHQ > 0)
    return Peaks(weight_BHQ, (place_BHQ * alone_BHQ).long(), alone_BHQ)


def at_places(attention_BHQK: Tensor, places_BS: Tensor, there_BS: Tensor) -> Tensor:
    """[B, H, Q, S]: the weights on a few keys of each sentence, 0 where a sentence has fewer."""
    index = places_BS[:, None, None].expand(*attention_BHQK.shape[:3], -1)
    return attention_BHQK.gather(-1, index).float() * there_BS[:, None, None]


def few_places(marked_BK: Tensor) -> tuple[Tensor, Tensor]:
    """Places of the marked keys [B, S] and which of them are there, S the most that any sentence has (at least 1)."""
    most = max(1, int(marked_BK.sum(-1).max())) if marked_BK.numel() else 1
    order_BK = torch.argsort(marked_BK.int(), dim=-1, descending=True, stable=True)
    places_BS = order_BK[:, :most]
    return places_BS, marked_BK.gather(-1, places_BS)
