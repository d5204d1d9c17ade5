"""Fold gates: multiply the values that gates have at test time into the weights, before heads are removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import UsageError, check_type
from headcount.heads import Head
from headcount.probes.gates import Gates
from headcount.sites.locate import locate
from headcount.sites.site import Site


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
    for site in locate(model):
        if gates.soft and site.key in gated_sites:
            _check(site)


def _multiply(model: nn.Module, values: Mapping[Head, float]) -> None:
    """Multiply heads by these values in the output projections; others and those with 1 do not change."""
    changed = [site for site in locate(model) if any(values.get(head, 1.0) != 1 for head in site.head_names())]
    for site in changed:
        _check(site)
    for site in changed:
        scale = torch.tensor([values.get(head, 1.0) for head in site.head_names()])
        scale = scale.repeat_interleave(site.head_dim).to(site.output.weight)  # type: ignore[arg-type]
        with torch.no_grad():
            weight: Any = site.output.weight
            weight.mul_(scale[:, None] if isinstance(site.output, Conv1D) else scale)


def _check(site: Site) -> None:
    if site.entry is not site.output:
        raise UsageError(
            f"The gates of {site.name} cannot be folded into its weights: its heads are normalised together before the "
            "output projection. Run the model inside hc.gated(model, gates=gates)."
        )
