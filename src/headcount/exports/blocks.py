"""Attention layers for formats in which every key/value head must serve the same number of query heads.

Shape suffixes: H heads, D head dimension, W hidden size of the model.
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
    """The attention of one layer in the export.

    Attributes:
        heads: Number of query heads. 0 if the layer has no attention.
        kv_sources: For each key/value head in the export, its index among the key/value heads of the model.
        zeros: Whether the layer has no heads in the model and gets one head of zeros.
    """

    heads: int
    kv_sources: tuple[int, ...]
    zeros: bool = False

    @property
    def kv_heads(self) -> int:
        return len(self.kv_sources)


def block(site: Site, *, may_be_empty: bool) -> Block:
    """Return the heads of a site, with repeated key/value heads if the groups differ in size.

    Args:
        site: The attention of one layer.
        may_be_empty: Whether the format allows a layer without heads and without a bias to be omitted.
    """
    if not site.num_heads:
        left_out = may_be_empty and getattr(site.output, "bias", None) is None
        return Block(0, ()) if left_out else Block(1, (0,), zeros=True)
    counts = site.served
    size = reduce(gcd, counts)
    return Block(site.num_heads, tuple(index for index, count in enumerate(counts) for _ in range(count // size)))


def same_everywhere(sites: Sites) -> bool:
    """Return whether all layers have the same number of query and key/value heads, in groups of equal size."""
    shapes = {(site.num_heads, site.kv_heads) for site in sites}
    equal = all(len(set(site.served)) == 1 for site in sites if site.num_heads)
    return len(shapes) == 1 and equal and shapes.pop()[0] > 0


def costs(sites: Sites, blocks: Sequence[Block]) -> list[str]:
    """Describe the overhead of the export: added heads of zeros and repeated key/value heads."""
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
    """Return the weight [H, D, W] and bias [H, D] of a query, key or value projection for the heads of a block."""
    parts = {"weight": projection.weight} | ({"bias": projection.bias} if projection.bias is not None else {})
    if written.zeros:
        return {name: tensor.new_zeros(1, site.head_dim, *tensor.shape[1:]) for name, tensor in parts.items()}
    rows = {name: tensor.unflatten(0, (-1, site.head_dim)) for name, tensor in parts.items()}
    sources = torch.tensor(written.kv_sources)
    return {name: tensor[sources] for name, tensor in rows.items()} if kv else rows


def output_weight(site: Site, written: Block) -> Tensor:
    """Return the weight [W, H x D] of the output projection for the heads of a block."""
    output: Any = site.output
    weight: Tensor = output.weight
    return weight.new_zeros(output.out_features, site.head_dim) if written.zeros else weight
