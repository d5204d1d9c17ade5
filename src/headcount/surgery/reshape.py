"""reshape: execute a removal plan, module by module. Knows paths and plans, not architectures.

This file also travels inside standalone checkpoints: it imports nothing of headcount but the files that travel with it.

A plan is plain JSON, one entry per site to change:
    path, projections, output, interleaved, extra   where the weights are
    head_dim, count, width, groups, kv_count, config_count   what must be updated, see `Attention`
    shared_bias, tail                               which adapters are needed
    heads, of, kv, kv_of                            what stays, by numbers in the original model, and of how many
    built                                           the heads the module was built with
    bias                                            whether the output projection gets one that it was built without
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from .adapters import ConfigView, Empty, PicksBloomBias, PicksMPNetBias, PicksT5Bias, adapt, gathering_backend
from .slicing import fused_rows, head_rows, keep_inputs, keep_outputs

SitePlan = Mapping[str, Any]
_BIAS = {"t5": PicksT5Bias, "mpnet": PicksMPNetBias, "bloom": PicksBloomBias}


def reshape(model: nn.Module, plan: Iterable[SitePlan]) -> None:
    """Remove heads from every planned site, in place."""
    for site in plan:
        module: Any = model.get_submodule(site["path"])
        before = getattr(module, "headcount", {"heads": site["built"], "kv": _kv_of(site, site["built"])})
        query = [before["heads"].index(head) for head in site["heads"]]  # indices among the current heads
        kv = [before["kv"].index(head) for head in site["kv"]]
        _slice(model, module, site, query, kv, sizes=(len(before["heads"]), len(before["kv"])))
        if site.get("bias"):
            _add_bias(model.get_submodule(site["output"]))
        _count(module, site)
        _adapt(module, site)
        module.headcount = {
            name: site[name] for name in ("heads", "of", "built", "kv", "kv_of", "bias") if name in site
        }


def _slice(
    model: nn.Module, module: nn.Module, site: SitePlan, query: list[int], kv: list[int], sizes: tuple[int, int]
) -> None:
    head_dim = site["head_dim"]
    for name, roles in site["projections"].items():
        if site["interleaved"] and len(roles) > 1:
            rows = head_rows(query, head_dim * len(roles))
        else:
            rows = fused_rows(roles, query, kv, sizes, head_dim)
        setattr(module, name, keep_outputs(getattr(module, name), rows))
    for name in site["extra"]:
        if hasattr(module, name):
            setattr(module, name, keep_outputs(getattr(module, name), head_rows(query, head_dim)))
    owner, _, name = site["output"].rpartition(".")
    setattr(
        model.get_submodule(owner), name, keep_inputs(model.get_submodule(site["output"]), head_rows(query, head_dim))
    )


def _add_bias(output: nn.Linear | Conv1D) -> None:
    """Add a bias of zeros if there is none."""
    if output.bias is None:
        weight = output.weight
        zeros = torch.zeros(output.out_features, dtype=weight.dtype, device=weight.device)
        output.bias = nn.Parameter(zeros, requires_grad=weight.requires_grad)


def _count(module: nn.Module, site: SitePlan) -> None:
    """Update the head counts that the module's code reads."""
    heads, kv = len(site["heads"]), len(site["kv"])
    for names, number in ((site["count"], heads), (site["width"], heads * site["head_dim"]), (site["kv_count"], kv)):
        for name in names:
            setattr(module, name, number)
    if site["groups"]:
        setattr(module, site["groups"], heads // kv if kv and not _uneven(site) else 1)


def _adapt(module: Any, site: SitePlan) -> None:
    """Add the adapters that the new shape of the module needs."""
    config = getattr(module, "config", None)
    config = config.base if isinstance(config, ConfigView) else config
    changes = dict.fromkeys(site["config_count"], len(site["heads"]))
    uneven = bool(site["heads"]) and _uneven(site)
    if config is not None:
        module.config = ConfigView(config, changes, gathers=uneven) if changes or uneven else config
    if uneven:
        module.kv_of_head = _kv_of_head(site)
        for backend in ("eager", "sdpa"):
            gathering_backend(backend)  # registered now, not inside compiled code
    if site["shared_bias"]:
        module.bias_heads = [site["built"].index(head) for head in site["heads"]]
        module.bias_total = len(site["built"])
    if site["heads"]:
        adapt(module, *([_BIAS[site["shared_bias"]]] if site["shared_bias"] else []))
    else:
        module.headcount_tail = dict(site["tail"])
        adapt(module, Empty)


def _kv_of_head(site: SitePlan) -> list[int]:
    """Index of the key/value head of each remaining query head, among the remaining ones."""
    size = site["of"] // site["kv_of"]
    return [site["kv"].index(head // size) for head in site["heads"]]


def _kv_of(site: SitePlan, heads: list[int]) -> list[int]:
    """The key/value heads of these query heads."""
    size = site["of"] // site["kv_of"]
    return sorted({head // size for head in heads})


def _uneven(site: SitePlan) -> bool:
    """Whether remaining key/value heads have different numbers of query heads."""
    served = _kv_of_head(site)
    return len({served.count(index) for index in range(len(site["kv"]))}) > 1
