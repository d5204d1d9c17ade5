"""Peaks: the key with the largest attention weight of each query and head. Knows neither tokens nor roles.

Shapes: B batch, H heads of a site, Q queries, K keys, S special keys of a sentence.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SAME = 1e-6  # weights that differ by less, relative to the larger, are tied: rounding must not decide


class Peaks(NamedTuple):
    """The largest weight of each query among the keys that count, its index, and whether it is unique."""

    weight_BHQ: Tensor
    place_BHQ: Tensor  # index of the maximum; 0 for a tie
    alone_BHQ: Tensor  # bool: no other key has the same weight


def peaks(attention_BHQK: Tensor, keys_BK: Tensor, *, diagonal: bool = True) -> Peaks:
    """The maximum over the keys that count. Weights are not renormalised; a tie is no maximum.

    diagonal: whether the key at the query's position counts.
    """
    weights_BHQK = attention_BHQK.float() * keys_BK[:, None, None]  # a copy: the model's attention is not changed
    if not diagonal:
        weights_BHQK.diagonal(dim1=-2, dim2=-1).zero_()
    return highest(weights_BHQK)


def highest(weights_BHQK: Tensor) -> Peaks:
    """Peaks of weights that are 0 for keys that do not count. Any leading dimensions."""
    weight_BHQ = weights_BHQK.amax(-1)
    top_BHQK = (weights_BHQK >= (weight_BHQ * (1 - SAME))[..., None]).to(weights_BHQK.dtype)
    # Number of maximal keys, and the sum of their indices, which is the index if there is one. Faster than argmax.
    places_K = torch.arange(weights_BHQK.shape[-1], device=weights_BHQK.device, dtype=weights_BHQK.dtype)
    many_BHQ, place_BHQ = (top_BHQK @ torch.stack([torch.ones_like(places_K), places_K], -1)).unbind(-1)
    alone_BHQ = (many_BHQ == 1) & (weight_BHQ > 0)
    return Peaks(weight_BHQ, (place_BHQ * alone_BHQ).long(), alone_BHQ)


def at_places(attention_BHQK: Tensor, places_BS: Tensor, there_BS: Tensor) -> Tensor:
    """[B, H, Q, S]: weights on a few keys of each sentence; 0 if a sentence has fewer."""
    index = places_BS[:, None, None].expand(*attention_BHQK.shape[:3], -1)
    return attention_BHQK.gather(-1, index).float() * there_BS[:, None, None]


def few_places(marked_BK: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of the marked keys [B, S] and which of them exist; S is the largest number in a sentence (at least 1)."""
    most = max(1, int(marked_BK.sum(-1).max())) if marked_BK.numel() else 1
    order_BK = torch.argsort(marked_BK.int(), dim=-1, descending=True, stable=True)
    places_BS = order_BK[:, :most]
    return places_BS, marked_BK.gather(-1, places_BS)
