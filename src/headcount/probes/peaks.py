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
    place_BHQ: Tensor
    alone_BHQ: Tensor  # bool: no other key has the same weight


def peaks(attention_BHQK: Tensor, keys_BK: Tensor, *, diagonal: bool = True) -> Peaks:
    """The maximum over the keys that count; weights are not renormalised, a tie for the maximum is no maximum.

    diagonal: whether the key at the query's own place counts.
    """
    weights_BHQK = attention_BHQK.float().masked_fill(~keys_BK[:, None, None], -1.0)  # a copy: the model's own stays
    if not diagonal:
        weights_BHQK.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
    weight_BHQ, place_BHQ = weights_BHQK.max(-1)
    weights_BHQK.scatter_(-1, place_BHQ[..., None], -1.0)
    second_BHQ = weights_BHQK.amax(-1)
    alone_BHQ = (weight_BHQ > 0) & (second_BHQ < weight_BHQ * (1 - SAME))
    return Peaks(weight_BHQ.clamp_min(0.0), place_BHQ, alone_BHQ)


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
