"""remove: from a model and a mask to a smaller model: the masked one, or one that makes up for what it lost."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError, NotRemovable, UsageError
from headcount.heads import HeadGrid
from headcount.hooks import Hooks, has_probes, original_module
from headcount.probes.masks import masked
from headcount.probes.projections import projected
from headcount.sites.locate import locate
from headcount.sites.site import Site, Sites
from headcount.surgery.compensate import Compensation, fold
from headcount.surgery.compensate import compensate as fit_compensation
from headcount.surgery.manifest import note
from headcount.surgery.plan import plan_removal
from headcount.surgery.reshape import reshape
from headcount.surgery.verify import Behaviour, compare, default_tolerance, observe
from headcount.tasks.task import Task


def remove(
    model: nn.Module,
    mask: HeadGrid,
    *,
    inplace: bool = False,
    verify: bool = True,
    batch: Mapping[str, Any] | None = None,
    compensate: str | Compensation = "none",
    task: Task | None = None,
    add_bias: bool = False,
) -> nn.Module:
    """A new, smaller, plain model without the heads that are 0 in `mask`; the original stays as it is.

    inplace: cut the given model itself, for models too large to hold twice; if verification fails it stays cut.
    verify: compare the masked and the pruned model on a small batch, outputs and greedy text, and raise if they differ.
    batch: the batch to compare them on; made up if none is given.
    compensate: bias, scale or lstsq folds into the plain weights what makes up for the heads that go, fitted on the
        data of `task` without training; or what `hc.compensate` gave for this model and mask.
    add_bias: give output projections that have no bias one, where they lose heads.
    """
    if not isinstance(mask, HeadGrid):
        raise UsageError(
            f"remove takes a HeadGrid of 1 and 0, such as sites.mask(off=[...]); got {type(mask).__name__}."
        )
    model = original_module(model)
    if has_probes(model):
        raise UsageError("A mask or tap is attached to this model; leave its block before removing heads.")
    sites = locate(model)
    fitted = _compensation(model, mask, compensate, task, add_bias)
    projections = fitted.projections if fitted else {}
    biased = [key for key, projection in projections.items() if projection.bias_O is not None]
    plan = plan_removal(model, sites, mask, biased=[key for key in biased if sites[key].output.bias is None])
    verify = verify and not any(parameter.is_meta for parameter in model.parameters())
    if verify:
        cut = [site for site in sites if any(p["path"] == site.path for p in plan)]
        with projected(model, projections):
            expected = _under_mask(model, mask, batch, cut)
    small = model if inplace else copy.deepcopy(model)
    for site in sites:
        if site.family == "generic":
            small.get_submodule(site.path).headcount_layout = site.attention  # type: ignore[assignment]
    with torch.no_grad():
        reshape(small, plan)
    for site in locate(small) if projections else ():
        if site.key in projections:
            fold(site, sites[site.key].heads, projections[site.key])
    note(small)
    if verify:
        compare(expected, _without(small, sites, batch), default_tolerance(small))
    return small


def _compensation(
    model: nn.Module, mask: HeadGrid, how: str | Compensation, task: Task | None, add_bias: bool
) -> Compensation | None:
    if isinstance(how, Compensation):
        if how.mask != mask:
            raise UsageError("This compensation was fitted for another mask; fit it again with hc.compensate.")
        return how
    if how == "none":
        return None
    if task is None:
        raise UsageError(f"compensate={how!r} needs task=, the data to calibrate on.")
    return fit_compensation(model, mask, task, how, add_bias=add_bias)


def _under_mask(model: nn.Module, mask: HeadGrid, batch: Mapping[str, Any] | None, cut: list[Site]) -> Behaviour:
    """What the masked model does; a site about to be cut that does not run is no evidence, and said so."""
    ran: set[str] = set()
    with masked(model, mask), Hooks() as hooks:
        for site in cut:
            hooks.see_input(site.entry, partial(_note_run, ran, site.name))
        behaviour = observe(model, batch)
    idle = [site.name for site in cut if site.num_heads and site.name not in ran]
    if idle:
        warnings.warn(
            f"Not verified: {', '.join(idle)} did not run on the test batch. Pass a batch that uses them with batch=.",
            stacklevel=3,
        )
    return behaviour


def _note_run(ran: set[str], name: str, _: Tensor) -> None:
    ran.add(name)


def _without(small: nn.Module, sites: Sites, batch: Mapping[str, Any] | None) -> Behaviour:
    """What the pruned model does; that it does not run at all can only happen to architectures no family describes."""
    try:
        return observe(small, batch)
    except (ModelError, RuntimeError, ValueError, TypeError, IndexError) as error:
        if not any(site.family == "generic" for site in sites):
            raise
        raise NotRemovable(
            f"Heads of {type(small).__name__} can be masked but not removed: it does not run with fewer ({error}). "
            "docs/how-to/add-a-family.md shows how to describe it."
        ) from error
