"""inspection: the record of which heads a model has and what they cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from torch import nn

from headcount.record import Record, Signature
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.surgery.cost import cost, head_parameters, site_parameters
from headcount.surgery.plan import obstacle


def inspection(model: nn.Module, *, name: str = "", length: int = 128) -> Record:
    """Everything `headcount inspect` shows, as a record."""
    signature = Signature(model=name, weights=weight_hash(model), arguments={"length": length})
    parts = {"class": type(model).__name__, "sites": site_rows(model), "cost": asdict(cost(model, length=length))}
    return Record("inspect", signature, parts)


def site_rows(model: nn.Module) -> list[dict[str, Any]]:
    return [
        {
            "site": site.name,
            "kind": site.kind,
            "layer": site.layer,
            "heads": list(site.heads),
            "of": site.total,
            "head_dim": site.head_dim,
            "kv_heads": site.kv_heads,
            "family": site.family,
            "path": site.path,
            "parameters": site_parameters(site),
            "parameters_per_head": head_parameters(site),
            "obstacle": obstacle(model, site),
        }
        for site in locate(model)
    ]
