"""inspection: the record of which heads a model has and what they cost."""

from __future__ import annotations

from torch import nn

from headcount.record import Record, Signature
from headcount.record.results.inspect import Inspection, SiteRow
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.surgery.cost import cost, head_parameters, site_parameters
from headcount.surgery.plan import obstacle


def inspection(model: nn.Module, *, name: str = "", length: int = 128) -> Record[Inspection]:
    """Everything `headcount inspect` shows, as a record."""
    signature = Signature(model=name, weights=weight_hash(model), arguments={"length": length})
    sites = tuple(
        SiteRow(
            site=site.name, kind=site.kind, layer=site.layer, indices=site.heads, total=site.total,
            head_dim=site.head_dim, kv_heads=site.kv_heads, family=site.family, path=site.path,
            parameters=site_parameters(site), parameters_per_head=head_parameters(site),
            obstacle=obstacle(model, site),
        )
        for site in locate(model)
    )  # fmt: skip
    return Record("inspect", signature, Inspection(type(model).__name__, sites, cost(model, length=length)))
