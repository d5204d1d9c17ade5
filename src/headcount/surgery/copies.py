"""Copies: the weights that removal copies without computing, compared bit for bit in any data type.

Shapes: R rows of a projection, one for each number it gives, K its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headcount.heads import Head
from headcount.probes.projections import Projection
from headcount.sites.fingerprint import row_hashes, tensor_hash
from headcount.sites.site import Site
from headcount.surgery.compensations.compensation import columns


@dataclass(frozen=True)
class Copies:
    """Hashes of the weights that a site may have after removal. They are small and available after the model is cut."""

    output: bytes  # of the output projection
    rows: Mapping[str, Tensor]  # of the other projections with their biases, by name, [R]

    @classmethod
    def of(cls, site: Site, heads: Sequence[Head], projection: Projection | None = None) -> Copies:
        """projection: replaces the site's output projection, as a compensation does."""
        names = [name for name in (*site.attention.projections, *site.attention.extra) if hasattr(site.module, name)]
        return cls(_hash_output(site, heads, projection), {name: _rows(getattr(site.module, name)) for name in names})

    def faults(self, small: Site) -> list[str]:
        """Parts of the pruned site that are not copies. Running it shows whether rows belong to the right heads."""
        copies = Copies.of(small, small.head_names())
        wrong = [
            f"some rows of {name}" for name, rows in copies.rows.items() if not torch.isin(rows, self.rows[name]).all()
        ]
        return [*(["the output projection"] if copies.output != self.output else []), *wrong]


def _hash_output(site: Site, heads: Sequence[Head], projection: Projection | None) -> bytes:
    like: Tensor = site.output.weight  # type: ignore[assignment]
    full = projection or Projection.of(site)
    remaining = columns([site.heads.index(head.index) for head in heads], site.head_dim)
    weight = tensor_hash("weight", full.weight_OK[:, remaining].to(like))
    return weight if full.bias_O is None else weight + tensor_hash("bias", full.bias_O.to(like))


def _rows(projection: nn.Linear | Conv1D) -> Tensor:
    weight = projection.weight.T if isinstance(projection, Conv1D) else projection.weight
    return row_hashes(weight, projection.bias)
