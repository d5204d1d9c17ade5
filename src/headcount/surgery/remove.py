"""remove: from a model and a mask to a smaller model that does the same as the masked one."""

from __future__ import annotations

import copy

import torch
from torch import nn

from headcount.errors import NotRemovable, UsageError
from headcount.heads import HeadGrid
from headcount.hooks import original_module
from headcount.probes.masks import masked
from headcount.sites.locate import locate
from headcount.sites.site import Sites
from headcount.surgery.manifest import note
from headcount.surgery.plan import plan_removal
from headcount.surgery.reshape import reshape
from headcount.surgery.verify import Behaviour, compare, default_tolerance, observe


def remove(model: nn.Module, mask: HeadGrid, *, inplace: bool = False, verify: bool = True) -> nn.Module:
    """A new, smaller, plain model without the heads that are 0 in `mask`; the original stays as it is.

    inplace: cut the given model itself, for models too large to hold twice.
    verify: compare the masked and the pruned model on a small batch, outputs and greedy text, and raise if they differ.
    """
    if not isinstance(mask, HeadGrid):
        raise UsageError(
            f"remove takes a HeadGrid of 1 and 0, such as sites.mask(off=[...]); got {type(mask).__name__}."
        )
    model = original_module(model)
    sites = locate(model)
    plan = plan_removal(model, sites, mask)
    verify = verify and not any(parameter.is_meta for parameter in model.parameters())
    if verify:
        with masked(model, mask):
            expected = observe(model)
    small = model if inplace else copy.deepcopy(model)
    for site in sites:
        if site.family == "generic":
            small.get_submodule(site.path).headcount_layout = site.attention  # type: ignore[assignment]
    with torch.no_grad():
        reshape(small, plan)
    note(small)
    if verify:
        compare(expected, _try(small, sites), default_tolerance(small))
    return small


def _try(small: nn.Module, sites: Sites) -> Behaviour:
    """What the pruned model does; that it does not run at all can only happen to architectures no family describes."""
    try:
        return observe(small)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        if not any(site.family == "generic" for site in sites):
            raise
        raise NotRemovable(
            f"Heads of {type(small).__name__} can be masked but not removed: it does not run with fewer ({error}). "
            "docs/how-to/add-a-family.md shows how to describe it."
        ) from error
