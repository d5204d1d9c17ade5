"""Plans: from a mask over located sites to a plan for `reshape`. Knows sites; changes no weights."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import MaskError, NotRemovable
from headcount.heads import HeadGrid
from headcount.probes.masks import align
from headcount.sites.projection import relative_path, wrapping
from headcount.sites.site import Site, Sites


def plan_removal(
    model: nn.Module, sites: Sites, mask: HeadGrid, *, biased: Collection[tuple[str, int]] = ()
) -> list[dict[str, Any]]:
    """One entry for each site that loses heads. Raises MaskError for values other than 0 and 1.

    biased: sites whose output projection gets a bias if it has none.
    """
    align(sites, mask)  # raises for a mask of another model
    odd = [head for head, value in zip(mask.heads, mask.numbers(), strict=True) if value not in (0.0, 1.0)]
    if odd:
        raise MaskError(
            f"A mask for removal must be 1 (keep) or 0 (remove); {odd[0]} is {mask[odd[0]]}. Round the mask first."
        )
    return [
        plan_site(site, [site.heads[index] for index in keep], biased=site.key in biased)
        for site, keep in losing(model, sites, mask)
    ]


def losing(model: nn.Module, sites: Sites, mask: HeadGrid) -> list[tuple[Site, list[int]]]:
    """The sites that lose heads, with the indices of their remaining heads. Raises if heads cannot be removed."""
    lost = []
    for site, values in zip(sites, align(sites, mask).values(), strict=True):
        if not values.all():
            check_removable(model, site)
            lost.append((site, np.flatnonzero(values).tolist()))
    return lost


def plan_site(site: Site, keep: list[int], *, biased: bool = False) -> dict[str, Any]:
    """The plan entry that leaves these heads (by original number) at a site. Plain JSON.

    biased: add a bias to the output projection if it has none; one added before is kept.
    """
    attention = site.attention
    kv = sorted({head // site.group_size for head in keep})
    tail = {name: getattr(attention, name) for name in ("cache", "cache_index", "keys")}
    return {
        "path": site.path, "projections": attention.projections, "output": relative_path(site.path, attention.output),
        "interleaved": attention.interleaved, "extra": list(attention.extra), "head_dim": site.head_dim,
        "count": list(attention.count), "width": list(attention.width), "groups": attention.groups,
        "kv_count": list(attention.kv_count), "config_count": list(attention.config_count),
        "shared_bias": attention.shared_bias,
        "tail": {**tail, "form": attention.tail, "output": attention.output, "after": list(attention.after)},
        "heads": keep, "of": site.total, "built": list(site.built), "kv": kv, "kv_of": site.kv_total,
        "bias": biased or has_added_bias(site),
    }  # fmt: skip


def has_added_bias(site: Site) -> bool:
    """Whether removal gave the output projection a bias that its architecture does not have."""
    return bool(getattr(site.module, "headcount", {}).get("bias"))


def check_removable(model: nn.Module, site: Site) -> None:
    """Raise NotRemovable, with advice, if heads of this site cannot be removed."""
    reason = obstacle(model, site)
    if reason:
        raise NotRemovable(
            f"Heads of {site.name} ({type(site.module).__name__}) can be masked but not removed: {reason}."
        )


def obstacle(model: nn.Module, site: Site) -> str:
    """Reason why heads of this site can be masked but not removed, with advice; empty if they can be removed."""
    if site.attention.obstacle:
        return site.attention.obstacle
    if site.kv_total != site.total and not site.attention.groups:
        return "its key/value heads are shared in a way headcount does not know"
    for name in (*site.attention.projections, site.attention.output):
        path = relative_path(site.path, name)
        problem = not_plain(model.get_submodule(path))
        if problem:
            return f"{path} is {problem}"
    return ""


_DEQUANTISE = "load the model unquantised, or call model.dequantize() first"


def not_plain(projection: nn.Module) -> str:
    """Reason why a projection's weight cannot be changed, with advice; empty if it can."""
    if hasattr(projection, "_hf_hook"):
        return "moved between devices by accelerate: load the model without device_map first"
    if adapter := wrapping(projection):
        return adapter
    weight = getattr(projection, "weight", None)
    of_transformers = type(projection).__module__.startswith(
        "transformers.models."
    )  # a linear layer defined in a modelling file
    plain = type(projection) in (nn.Linear, Conv1D) or (of_transformers and isinstance(projection, nn.Linear))
    if not plain or type(weight) is not nn.Parameter:
        return f"a {type(projection).__name__}, not a plain linear layer: {_DEQUANTISE}"
    if not weight.dtype.is_floating_point or weight.dtype.itemsize < torch.float16.itemsize:
        return f"quantised to {weight.dtype}: {_DEQUANTISE}"
    return ""
