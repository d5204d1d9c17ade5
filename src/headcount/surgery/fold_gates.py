"""Fold gates: multiply gates that are neither 0 nor 1 at test time into the weights, before heads are removed."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import UsageError, check_type
from headcount.probes.gates import Gates
from headcount.sites.locate import locate
from headcount.sites.site import Site


def fold_gates(model: nn.Module, gates: Gates) -> None:
    """Multiply the test-time values of gates into the output projections, in place.

    The model then computes without the gates what it computed with them, and closed heads can be removed. Only the
    variant "voita2019-code" has gates other than 0 and 1 at test time; with the others nothing changes.

    Args:
        model: The model.
        gates: The trained gates, from `hc.gated`.

    Raises:
        UsageError: If the output projection of a gated site cannot take the factors.
    """
    check_type("gates", gates, Gates, "the gates of hc.gated, not a mask: hc.remove takes that")
    values = dict(zip(gates.heads, gates.chosen().tolist(), strict=True))
    if all(value in (0.0, 1.0) for value in values.values()):
        return
    check_foldable(model, gates)
    for site in _gated(model, gates):
        scale = torch.tensor([values.get(head, 1.0) or 1.0 for head in site.head_names()])
        scale = scale.repeat_interleave(site.head_dim).to(site.output.weight)  # type: ignore[arg-type]
        with torch.no_grad():
            weight: Any = site.output.weight
            weight.mul_(scale[:, None] if isinstance(site.output, Conv1D) else scale)


def check_foldable(model: nn.Module, gates: Gates) -> None:
    """Raise if soft gates cannot be multiplied into the weights."""
    for site in _gated(model, gates):
        if gates.soft and site.entry is not site.output:
            raise UsageError(
                f"The soft gates of {site.name} cannot be folded into its weights; use the default variant."
            )


def _gated(model: nn.Module, gates: Gates) -> list[Site]:
    gated_sites = {head.site for head in gates.heads}
    return [site for site in locate(model) if site.key in gated_sites]
