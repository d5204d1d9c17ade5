"""Slicing: the rows and columns of projections that belong to some heads. Knows weights, not models.

This file also travels inside standalone checkpoints: it imports nothing of headcount.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


def head_rows(heads: Sequence[int], head_dim: int) -> list[int]:
    """The rows of these heads, if rows are ordered by head."""
    return [head * head_dim + row for head in heads for row in range(head_dim)]


def fused_rows(roles: str, query: Sequence[int], kv: Sequence[int], sizes: tuple[int, int], head_dim: int) -> list[int]:
    """The rows to keep of a projection that holds the blocks `roles` (of "qkv") one after the other.

    sizes: number of query heads and of key/value heads before.
    """
    rows: list[int] = []
    start = 0
    for role in roles:
        keep, size = (query, sizes[0]) if role == "q" else (kv, sizes[1])
        rows += [start + row for row in head_rows(keep, head_dim)]
        start += size * head_dim
    return rows


def keep_outputs(projection: nn.Module, rows: Sequence[int]) -> nn.Module:
    """A copy of the projection that computes only these outputs."""
    return _cut(projection, rows, outputs=True)


def keep_inputs(projection: nn.Module, columns: Sequence[int]) -> nn.Module:
    """A copy of the projection that takes only these inputs; its bias is kept."""
    return _cut(projection, columns, outputs=False)


def _cut(projection: nn.Linear | Conv1D, keep: Sequence[int], *, outputs: bool) -> nn.Module:
    transposed = isinstance(projection, Conv1D)  # weight [in, out]
    new = copy.copy(projection)
    new._parameters = dict(projection._parameters)
    new.weight = _select(projection.weight, keep, dim=int(outputs == transposed))
    bias = projection._parameters.get("bias")
    if bias is not None and outputs:
        new.bias = _select(bias, keep, dim=0)
    attribute = {(True, True): "nf", (True, False): "nx", (False, True): "out_features", (False, False): "in_features"}
    setattr(new, attribute[transposed, outputs], len(keep))
    return new


def _select(parameter: Tensor, keep: Sequence[int], dim: int) -> nn.Parameter:
    """Keeps dtype, device and requires_grad."""
    index = torch.tensor(keep, dtype=torch.long, device=parameter.device)
    return nn.Parameter(parameter.detach().index_select(dim, index).contiguous(), requires_grad=parameter.requires_grad)
