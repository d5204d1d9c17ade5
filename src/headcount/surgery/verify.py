"""verify: check that the pruned model equals the masked model, site by site on a small batch.

Three things are compared, on input that is the same for both models at every site:
    outputs of each remaining head and of each site                 up to rounding
    projections of each pruned site, and their biases               exactly: they are copied, not computed
    outputs of the model, token by token if it generates text       up to rounding
The effect of rounding is measured: the masked model runs a second time with different rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UsageError, VerificationError, check_type
from headcount.heads import Head, HeadGrid
from headcount.hooks import original_module
from headcount.probes.masks import masked
from headcount.probes.projections import projected
from headcount.sites.locate import locate
from headcount.sites.projection import width_in
from headcount.sites.site import Site, SiteKey
from headcount.surgery.compensate import Compensation
from headcount.surgery.copies import Copies
from headcount.surgery.exercise import exercise
from headcount.surgery.rounding import Rounding, rounded_otherwise
from headcount.surgery.trace import Comparison, Trace, recorded

_ADVICE = (
    "If this is the mask the model was pruned with, the architecture needs its own description: "
    "docs/how-to/add-a-family.md."
)


def verify(
    model: nn.Module,
    small: nn.Module,
    mask: HeadGrid,
    *,
    batch: Mapping[str, Tensor] | None = None,
    compensation: Compensation | None = None,
) -> float:
    """Compare a masked model with its pruned version.

    Args:
        model: The whole model.
        small: The pruned model.
        mask: The mask that it was pruned with.
        batch: Small batch to compare them on: the output of every site is held in memory. By default a synthetic one.
        compensation: Compensation in the weights of the pruned model; the masked model then runs with it too.

    Returns:
        The largest difference of a head, site or output, relative to its size.

    Raises:
        VerificationError: If a difference is larger than rounding explains.
    """
    check_type("small", small, nn.Module, "the pruned model, from hc.remove(model, mask)")
    model, small = original_module(model), original_module(small)
    if _dtype(model) != _dtype(small):
        raise UsageError(f"verify needs two models of the same dtype; got {_dtype(model)} and {_dtype(small)}.")
    return Expectation.of(model, mask, batch=batch, compensation=compensation).check(small)


@dataclass(frozen=True)
class Expectation:
    """Outputs of the masked model on a batch, and the effect of rounding on them."""

    trace: Trace
    rounding: Mapping[str, float]  # name -> relative difference
    copies: Mapping[SiteKey, Copies]  # for the pruned sites
    batch: Mapping[str, Any] | None

    @classmethod
    def of(
        cls,
        model: nn.Module,
        mask: HeadGrid,
        *,
        batch: Mapping[str, Tensor] | None = None,
        compensation: Compensation | None = None,
    ) -> Expectation:
        """Run the masked model twice. The model is not changed."""
        sites = [site for site in locate(model) if site.num_heads]
        projections = compensation.projections if compensation else {}
        with masked(model, mask), projected(model, projections):
            heads = {site.key: [head for head in site.head_names() if mask[head]] for site in sites}
            with recorded(model, sites, heads) as trace:
                exercise(model, batch)
            rounding = _measure_rounding(model, sites, trace, batch)
        cut = [site for site in sites if len(heads[site.key]) < site.num_heads]
        copies = {site.key: Copies.of(site, heads[site.key], projections.get(site.key)) for site in cut}
        return cls(trace, rounding, copies, batch)

    def is_idle(self, site: Site) -> bool:
        """Whether a site did not run, so that it cannot be verified."""
        return site.num_heads > 0 and not self.trace.outputs[site.key]

    def check(self, small: nn.Module) -> float:
        """The largest difference of the pruned model. Raises if one is larger than rounding explains."""
        differences, faults = self.compare(small)
        if faults:
            further = list(faults)[1:]
            more = (
                f" The same of {', '.join(further[:4])}{' and others' if len(further) > 4 else ''}." if further else ""
            )
            raise VerificationError(f"{next(iter(faults.values()))}{more} {_ADVICE}")
        return max(differences.values(), default=0.0)

    def compare(self, small: nn.Module) -> tuple[dict[str, float], dict[str, str]]:
        """Differences between the pruned and the masked model, and a description of those that are too large."""
        sites = [site for site in locate(small) if site.key in self.trace.heads]
        self._check_heads(sites)
        comparison = Comparison(self.trace)
        with comparison.attached(small, sites):
            exercise(small, self.batch)
        differences = comparison.differences()
        faults = dict(comparison.faults)
        for site in sites:
            wrong = self.copies[site.key].faults(site) if site.key in self.copies else []
            if wrong:
                faults[site.name] = f"{site.name}: {', '.join(wrong)}: not what the heads that stay had."
        for point, difference in differences.items():
            explained = self.rounding.get(point, math.inf)  # missing if rounding alone makes numbers infinite
            if not difference <= explained:
                faults[point] = (
                    f"{point}: pruned and masked model differ by {difference:.2g} of its size; rounding explains "
                    f"{explained:.2g}."
                )
        return differences, faults

    def _check_heads(self, sites: Sequence[Site]) -> None:
        present = {site.key: site.head_names() for site in sites}
        for key, heads in self.trace.heads.items():
            if list(present.get(key, ())) != heads:
                raise VerificationError(
                    f"{'.'.join(map(str, key))}: the pruned model has the heads {_numbers(present.get(key, ()))}, the "
                    f"mask keeps {_numbers(heads)}."
                )


def _measure_rounding(
    model: nn.Module, sites: Sequence[Site], trace: Trace, batch: Mapping[str, Tensor] | None
) -> dict[str, float]:
    """Differences of the masked model from itself with different rounding errors in its attention."""
    rounding = Rounding()
    comparison = Comparison(trace, hand_on=lambda output, site: rounding(output, width_in(site.output)))
    with rounded_otherwise(sites, rounding), comparison.attached(model, sites):
        exercise(model, batch)
    least = torch.finfo(_dtype(model)).eps
    return {point: max(difference, least) for point, difference in comparison.differences().items()}


def _numbers(heads: Sequence[Head]) -> list[int]:
    return [head.index for head in heads]


def _dtype(model: nn.Module) -> torch.dtype:
    return next((weight.dtype for weight in model.parameters() if weight.dtype.is_floating_point), torch.float32)
