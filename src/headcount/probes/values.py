"""Values: recompute a head's output from the values of its keys.

Shapes: B batch, Q queries, K keys, H heads of a site, D head size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from weakref import WeakSet

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.hooks import Hooks, original_module
from headcount.sites.locate import locate
from headcount.sites.projection import relative
from headcount.sites.site import Site

# (the head's own output [B, Q, D], values of its keys [B, K, D]) -> its output instead [B, Q, D]
Output = Callable[[Tensor, Tensor], Tensor]
_recomputed_models: WeakSet[nn.Module] = WeakSet()  # inside a block of `recomputed`


def is_recomputed(model: nn.Module) -> bool:
    """Whether outputs of heads are replaced: their attention, as the model computes it, is not used."""
    return original_module(model) in _recomputed_models


@contextmanager
def recomputed(model: nn.Module, outputs: Mapping[Head, Output]) -> Iterator[None]:
    """Inside the block, replace the outputs of these heads by a function of their values."""
    sites = locate(model)
    by_site: dict[tuple[str, int], dict[int, Output]] = {}
    for head in sites.find(outputs) if outputs else ():
        by_site.setdefault(head.site, {})[sites[head.site].heads.index(head.index)] = outputs[head]
    with Hooks() as hooks:
        for key, functions in by_site.items():
            _Recomputing(model, sites[key], functions).attach(hooks)
        outer = is_recomputed(model)
        _recomputed_models.add(original_module(model))
        try:
            yield
        finally:
            if not outer:
                _recomputed_models.discard(original_module(model))


class _Recomputing:
    """Hooks of one site: read its value projection, change its heads' outputs."""

    def __init__(self, model: nn.Module, site: Site, functions: Mapping[int, Output]) -> None:
        self._site, self._functions = site, functions
        self._projection = relative(original_module(model), site.path, site.attention.value)
        self._values: Tensor | None = None

    def attach(self, hooks: Hooks) -> None:
        hooks.change_output(self._projection, partial(setattr, self, "_values"))
        hooks.change_input(self._site.entry, self._change)

    def _change(self, context: Tensor) -> Tensor:
        if self._values is None:  # keys and values of cross attention come from a cache
            raise UsageError(f"{self._site.name} ran on cached values; run the model with use_cache=False.")
        values_BKHD, self._values = head_values(self._site, self._values), None
        heads_BQHD = context.unflatten(-1, (self._site.num_heads, self._site.head_dim))
        if values_BKHD.dim() != 4 or heads_BQHD.dim() != 4 or len(values_BKHD) != len(heads_BQHD):
            raise UsageError(f"{self._site.name} does not run on a batch of sequences: its heads have no rows of keys.")
        parts = list(heads_BQHD.unbind(-2))
        for index, function in self._functions.items():
            parts[index] = function(parts[index], values_BKHD[:, :, index]).to(context.dtype)
        return torch.stack(parts, -2).flatten(-2)


def head_values(site: Site, projected: Tensor) -> Tensor:
    """[B, K, H, D]: values of each head, from the output of the value projection, fused or not."""
    roles = site.attention.projections[site.attention.value]
    if site.attention.interleaved and len(roles) > 1:
        values_BKHD = projected.unflatten(-1, (-1, len(roles), site.head_dim))[..., roles.index("v"), :]
    else:
        counts = [site.num_heads if role == "q" else site.kv_heads for role in roles]
        start = sum(counts[: roles.index("v")]) * site.head_dim
        width = site.kv_heads * site.head_dim
        values_BKHD = projected[..., start : start + width].unflatten(-1, (-1, site.head_dim))
    if site.kv_heads == site.num_heads:
        return values_BKHD
    owners = [site.kv_kept.index(index // site.group_size) for index in site.heads]
    return values_BKHD[..., owners, :]
