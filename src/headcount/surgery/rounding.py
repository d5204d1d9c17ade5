"""Rounding: run a model with different rounding errors in its attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from headcount.hooks import Hooks
from headcount.sites.projection import width_in
from headcount.sites.site import Site


class Rounding:
    """Changes every number at random by as much as rounding could have."""

    def __init__(self, seed: int = 0) -> None:
        self._random = torch.Generator().manual_seed(seed)

    def __call__(self, tensor: Tensor, terms: int) -> Tensor:
        """terms: number of products summed for each number.

        The number itself is rounded to its type, by at most half a step. The sum is rounded at every term, in float32
        if the type is shorter, and its errors grow with sqrt(terms) (Higham and Mary 2019).
        """
        wide = torch.promote_types(tensor.dtype, torch.float32)
        values = torch.where(tensor.isfinite(), tensor, 0).to(wide)
        usual = values.square().mean(-1, keepdim=True).sqrt()
        step = values.abs() * torch.finfo(tensor.dtype).eps + usual * math.sqrt(terms) * torch.finfo(wide).eps
        up = torch.randint(2, tensor.shape, generator=self._random).to(tensor.device)
        return (tensor.to(wide) + step * (up - 0.5)).to(tensor.dtype)


@contextmanager
def rounded_otherwise(sites: Sequence[Site], rounding: Rounding) -> Iterator[None]:
    """Inside the block, perturb all factors of a site: queries, keys, values, heads' outputs and its output."""
    with Hooks() as hooks:
        for site in sites:
            for name in site.attention.projections:
                projection = getattr(site.module, name)
                hooks.change_output(projection, _moved(rounding, width_in(projection)))
            hooks.change_input(site.entry, _moved(rounding, width_in(site.output)))
            hooks.change_output(site.output, _moved(rounding, width_in(site.output)))
        yield


def _moved(rounding: Rounding, terms: int) -> Callable[[Tensor], Tensor]:
    return lambda tensor: rounding(tensor, terms)
