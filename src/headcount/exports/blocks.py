"""Blocks: the attention of each layer where key/value heads must serve equal numbers of query heads.

Shape suffixes: H heads, D numbers of a head, W width of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import Any

import torch
from torch import Tensor, nn

from headcount.sites.site import Site, Sites


@dataclass(frozen=True)
class Block:
    """The attention of one layer as it is written."""

    heads: int  # 0: the layer has no attention at all
    kv_sources: tuple[int, ...]  # for each key/value head, its place among those of the model
    zeros: bool = False  # one head of zeros, in a layer that has none

    @property
    def kv_heads(self) -> int:
        return len(self.kv_sources)


def block(site: Site, *, may_be_empty: bool) -> Block:
    """The heads of a site, with key/value heads repeated where their groups are not equal.

    may_be_empty: whether a layer without heads and without a bias may be left out.
    """
    if not site.num_heads:
        left_out = may_be_empty and getattr(site.output, "bias", None) is None
        return Block(0, ()) if left_out else Block(1, (0,), zeros=True)
    counts = site.served
    size = reduce(gcd, counts)
    return Block(site.num_heads, tuple(index for index, count in enumerate(counts) for _ in range(count // size)))


def same_everywhere(sites: Sites) -> bool:
    """Whether all layers have the same numbers of heads, in equal groups."""
    shapes = {(site.num_heads, site.kv_heads) for site in sites}
    equal = all(len(set(site.served)) == 1 for site in sites if site.num_heads)
    return len(shapes) == 1 and equal and shapes.pop()[0] > 0


def costs(sites: Sites, blocks: Sequence[Block]) -> list[str]:
    """What the form costs beyond the model itself, in words."""
    notes = []
    zeros = [str(site.layer) for site, written in zip(sites, blocks, strict=True) if written.zeros]
    if zeros:
        notes.append(f"one head of zeros is added, because no head is left, in layer {', '.join(zeros)}")
    repeated = [
        f"{site.layer} ({site.kv_heads} -> {written.kv_heads})"
        for site, written in zip(sites, blocks, strict=True)
        if not written.zeros and written.kv_heads > site.kv_heads
    ]
    if repeated:
        before, after = sum(site.kv_heads for site in sites), sum(written.kv_heads for written in blocks)
        notes.append(
            f"groups are not equal: key/value heads are repeated in layer {', '.join(repeated)}; the cache of the "
            f"whole model grows from {before} to {after} key/value heads, {after / before - 1:+.0%}"
        )
    return notes


def input_heads(projection: nn.Linear, site: Site, written: Block, *, kv: bool) -> dict[str, Tensor]:
    """Weight [H, D, W] and bias [H, D] of the query, key or value projection, in the heads of a block."""
    parts = {"weight": projection.weight} | ({"bias": projection.bias} if projection.bias is not None else {})
    if written.zeros:
        return {name: tensor.new_zeros(1, site.head_dim, *tensor.shape[1:]) for name, tensor in parts.items()}
    rows = {name: tensor.unflatten(0, (-1, site.head_dim)) for name, tensor in parts.items()}
    sources = torch.tensor(written.kv_sources)
    return {name: tensor[sources] for name, tensor in rows.items()} if kv else rows


def output_weight(site: Site, written: Block) -> Tensor:
    """The weight of the output projection [W, H x D], in the heads of a block."""
    output: Any = site.output
    weight: Tensor = output.weight
    return weight.new_zeros(output.out_features, site.head_dim) if written.zeros else weight
