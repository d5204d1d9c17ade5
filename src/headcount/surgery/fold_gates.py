"""Fold gates: multiply the values that gates have at test time into the weights, before heads are removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import UsageError, check_type
from headcount.heads import Head
from headcount.probes.gates import Gates
from headcount.sites.locate import locate
from headcount.sites.site import Site
from headcount.surgery.plan import not_plain


def fold_gates(model: nn.Module, gates: Gates) -> None:
    """Multiply the test-time values of gates into the output projections, in place.

    The model then computes without the gates what it computed with them in eval mode, and closed heads can be removed.

    Args:
        model: The model.
        gates: The trained gates, from `hc.gated`.

    Raises:
        UsageError: If the output projection of a gated site cannot take the factors.
    """
    check_type("gates", gates, Gates, "the gates of hc.gated, not a mask: hc.remove takes that")
    _multiply(model, dict(zip(gates.heads, gates.chosen().tolist(), strict=True)))


def fold_open_gates(model: nn.Module, gates: Gates) -> None:
    """Like `fold_gates`, but closed heads keep their weights: a budget may keep some of them."""
    values = dict(zip(gates.heads, gates.chosen().tolist(), strict=True))
    _multiply(model, {head: value or 1.0 for head, value in values.items()})


def check_foldable(model: nn.Module, gates: Gates) -> None:
    """Raise if soft gates cannot be multiplied into the weights."""
    gated_sites = {head.site for head in gates.heads}
    gated = [site for site in locate(model) if gates.soft and site.key in gated_sites]
    for site in gated:
        _check(site)
    for sharing in _by_weight(gated):
        if len(sharing) > 1:
            raise _differ(sharing[0], sharing[1])


def _multiply(model: nn.Module, values: Mapping[Head, float]) -> None:
    """Multiply heads by these values in the output projections; others and those with 1 do not change."""
    factors = {site.key: [values.get(head, 1.0) for head in site.head_names()] for site in locate(model)}
    changed = []
    for sharing in _by_weight(locate(model)):
        for site in sharing:
            if any(factor != 1 for factor in factors[site.key]):
                _check(site)
            if factors[site.key] != factors[sharing[0].key]:
                raise _differ(sharing[0], site)
        if any(factor != 1 for factor in factors[sharing[0].key]):
            changed.append(sharing[0])
    for site in changed:
        scale = torch.tensor(factors[site.key])
        scale = scale.repeat_interleave(site.head_dim).to(site.output.weight)  # type: ignore[arg-type]
        with torch.no_grad():
            weight: Any = site.output.weight
            weight.mul_(scale[:, None] if isinstance(site.output, Conv1D) else scale)


def _by_weight(sites: Iterable[Site]) -> list[list[Site]]:
    """The sites with heads, those with the same weight of the output projection together."""
    groups: dict[int, list[Site]] = {}
    for site in sites:
        if site.num_heads:
            weight = getattr(site.output, "weight", None)
            groups.setdefault(id(weight if isinstance(weight, nn.Parameter) else site.output), []).append(site)
    return list(groups.values())


def _differ(site: Site, other: Site) -> UsageError:
    return UsageError(
        f"The gates of {site.name} and {other.name} cannot be folded into their weights: both have the same output "
        "projection, and gates of their own. Run the model inside hc.gated(model, gates=gates)."
    )


def _check(site: Site) -> None:
    problem = not_plain(site.output)
    if problem:
        raise UsageError(
            f"The gates of {site.name} cannot be folded into its weights: its output projection is {problem}."
        )
    if site.entry is not site.output:
        raise UsageError(
            f"The gates of {site.name} cannot be folded into its weights: its heads are normalised together before the "
            "output projection. Run the model inside hc.gated(model, gates=gates)."
        )
