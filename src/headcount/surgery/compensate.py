"""compensate: fit the remaining heads to make up for the removed ones, from calibration data and without training.

Shapes: A = heads of a site x head size, K = remaining heads x head size, O outputs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import UsageError, check_name
from headcount.heads import HeadGrid
from headcount.hooks import has_probes, original_module
from headcount.probes.projections import Projection
from headcount.progress import Progress, silent
from headcount.record.results.prune import CompensationFit, SiteFit
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.site import Site, SiteKey
from headcount.surgery.ascent import Ascent
from headcount.surgery.compensations.compensation import Calibration, Fit, columns, compensations
from headcount.surgery.plan import losing
from headcount.surgery.spill import ROOM
from headcount.tasks.task import Task


@dataclass(frozen=True)
class Compensation:
    """New output projections that make up for the removed heads of one model; `hc.compensate` fits them.

    Attributes:
        method: Name of the compensation, such as "lstsq".
        mask: The mask they were fitted for.
        projections: New weights [outputs, heads x head size] of each site, by (kind, layer). Removed heads have zeros.
        fits: How well each site reproduces the output of the full model.
        data: Hash of the calibration data.
        rows: Number of calibration tokens.
        weights: Hash of the model's weights; empty if not known.
    """

    method: str
    mask: HeadGrid
    projections: Mapping[SiteKey, Projection]
    fits: Mapping[SiteKey, Fit]
    data: str = ""
    rows: int = 0
    weights: str = ""

    def to_result(self) -> CompensationFit:
        """The fit as it is stored in a record."""
        sites = {".".join(map(str, key)): _site_fit(fit) for key, fit in self.fits.items()}
        return CompensationFit(self.method, self.data, self.rows, sites)


def compensate(
    model: nn.Module,
    mask: HeadGrid,
    task: Task,
    method: str = "lstsq",
    *,
    add_bias: bool = False,
    room: int = ROOM,
    progress: Progress = silent,
) -> Compensation:
    """Fit new output projections for the sites that lose heads, without training.

    Sites are fitted from the lowest to the highest. Each new projection maps the outputs of the remaining heads, as
    computed by the pruned and already compensated layers below, to the output that the site has in the full model.
    Padding is left out. With several processes, each runs its share of the batches, and all get the same result.

    Args:
        model: The model.
        mask: Mask with 1 for heads to keep and 0 for heads to remove.
        task: Calibration data.
        method: "none", "bias", "scale" or "lstsq".
        add_bias: Whether to add a bias to projections that have none, at sites that lose heads.
        room: Bytes of activations to hold in memory. Further activations are kept on disk.
        progress: Function called with (stage, step, number of steps).

    Returns:
        The fitted projections, which `hc.remove(..., compensate=...)` puts into the weights.
    """
    check_name("compensation", method, compensations)
    model = original_module(model)
    if has_probes(model):
        raise UsageError("A mask or tap is attached to this model; exit its with block before compensating.")
    lost = {site.key: keep for site, keep in losing(model, locate(model), mask)}
    fits: dict[SiteKey, Fit] = {}
    projections: dict[SiteKey, Projection] = {}
    rows, weights = 0, weight_hash(model)
    if not lost:
        return Compensation(method, mask, projections, fits, task.fingerprint, weights=weights)
    with torch.no_grad(), Ascent(model, task, keys=list(lost), room=room, progress=progress) as ascent:
        _warn_of_idle(set(lost) - {site.key for site in ascent.sites})
        for site in ascent.sites:
            intercept = site.output.bias is not None or add_bias
            calibration = ascent.calibrate(site, lost[site.key], projections, intercept=intercept)
            fits[site.key] = compensations[method](calibration)
            projections[site.key] = spread(calibration, fits[site.key])
            rows = max(rows, int(calibration.all.count) // ascent.times_in_run(site))
    return Compensation(method, mask, projections, fits, task.fingerprint, rows, weights)


def _warn_of_idle(idle: Collection[SiteKey]) -> None:
    if idle:
        names = ", ".join(".".join(map(str, key)) for key in sorted(idle))
        warnings.warn(
            f"Not compensated: {names} did not run on the calibration data. Add examples that use these layers.",
            stacklevel=3,
        )


def spread(calibration: Calibration, fit: Fit) -> Projection:
    """The fitted projection over all heads of the site, with zeros for removed heads."""
    weight_OA = torch.zeros_like(calibration.projection.weight_OK)
    weight_OA[:, calibration.places] = fit.weight_OK
    return Projection(weight_OA, fit.bias_O)


@torch.no_grad()
def fold(site: Site, heads: tuple[int, ...], projection: Projection) -> None:
    """Write a projection over `heads` (original numbers) into the weights of a site that has some of them."""
    weight, bias = site.output.weight, site.output.bias
    kept_OK = projection.weight_OK[:, columns([heads.index(head) for head in site.heads], site.head_dim)]
    weight.copy_(kept_OK.T if isinstance(site.output, Conv1D) else kept_OK)  # type: ignore[operator]
    if projection.bias_O is not None:
        bias.copy_(projection.bias_O)  # type: ignore[operator]


def _site_fit(fit: Fit) -> SiteFit:
    unchanged = fit.rho is not None and math.isinf(fit.rho)
    return SiteFit(None if unchanged else fit.rho, unchanged, fit.explained, fit.before)
