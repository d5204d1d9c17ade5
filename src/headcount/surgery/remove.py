"""remove: physically remove the masked heads of a model, optionally with compensation."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from headcount.errors import ModelError, NotRemovable, UsageError, VerificationError
from headcount.heads import HeadGrid
from headcount.hooks import has_probes, original_module
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import keep_layouts, locate
from headcount.sites.site import Site, Sites
from headcount.surgery.compensate import Compensation, fold
from headcount.surgery.compensate import compensate as fit_compensation
from headcount.surgery.manifest import note
from headcount.surgery.plan import plan_removal
from headcount.surgery.reshape import reshape
from headcount.surgery.verify import Expectation
from headcount.tasks.task import Task

_ADVICE = "This error's `model` is the pruned model; hc.remove(..., verify=False) returns it without comparing."


@torch.inference_mode(False)  # weights made in inference mode of the caller could not be trained or scored
def remove(
    model: nn.Module,
    mask: HeadGrid,
    *,
    inplace: bool = False,
    verify: bool = True,
    batch: Mapping[str, Tensor] | None = None,
    compensate: str | Compensation = "none",
    task: Task | None = None,
    add_bias: bool = False,
) -> nn.Module:
    """Return a smaller, plain model without the heads that are 0 in `mask`. The original is not changed.

    Args:
        model: The model.
        mask: Mask with 1 for heads to keep and 0 for heads to remove.
        inplace: Change the given model itself, for models too large to hold twice. It stays changed if verification
            fails.
        verify: Compare the masked and the pruned model on a small batch, site by site and in generated text.
        batch: Small batch to compare them on. By default a synthetic one.
        compensate: "bias", "scale" or "lstsq": correct the weights for the removed heads, fitted on `task` without
            training. Or the result of `hc.compensate` for this model and mask.
        task: Calibration data of the compensation.
        add_bias: Add a bias to output projections that have none, at sites that lose heads, to compensate with.

    Raises:
        NotRemovable: If heads of this model can only be masked.
        VerificationError: If the two models differ by more than rounding. Its `model` is the pruned model.
    """
    if not isinstance(mask, HeadGrid):
        raise UsageError(
            f"remove expects a HeadGrid of 1 and 0, such as sites.mask(off=[...]); got {type(mask).__name__}."
        )
    model = original_module(model)
    if has_probes(model):
        raise UsageError("A mask or tap is attached to this model; exit its with block before removing heads.")
    sites = locate(model)
    fitted = _compensation(model, mask, compensate, task, add_bias)
    projections = fitted.projections if fitted else {}
    biased = [key for key, projection in projections.items() if projection.bias_O is not None]
    plan = plan_removal(model, sites, mask, biased=[key for key in biased if sites[key].output.bias is None])
    verify = verify and not any(parameter.is_meta for parameter in model.parameters())
    expectation = Expectation.of(model, mask, batch=batch, compensation=fitted) if verify else None
    if expectation:
        _warn_of_idle(expectation, [site for site in sites if any(entry["path"] == site.path for entry in plan)])
    small = model if inplace else copy.deepcopy(model)
    keep_layouts(sites, small)
    with torch.no_grad():
        reshape(small, plan)
    for site in locate(small) if projections else ():
        if site.key in projections:
            fold(site, sites[site.key].heads, projections[site.key])
    note(small)
    if expectation:
        _check(expectation, small, sites)
    return small


def _compensation(
    model: nn.Module, mask: HeadGrid, method: str | Compensation, task: Task | None, add_bias: bool
) -> Compensation | None:
    if isinstance(method, Compensation):
        if method.mask != mask:
            raise UsageError("This compensation was fitted for another mask; fit one for this mask with hc.compensate.")
        if method.weights and method.weights != weight_hash(model):
            raise UsageError(
                "This compensation was fitted for other weights; fit one for this model with hc.compensate."
            )
        if add_bias and any(projection.bias_O is None for projection in method.projections.values()):
            raise UsageError("This compensation was fitted without a bias; fit one with hc.compensate(add_bias=True).")
        return method
    if method == "none":
        if add_bias:
            raise UsageError("add_bias is for a compensation, which fits the bias: give compensate, or leave it out.")
        return None
    if task is None:
        raise UsageError(f"compensate={method!r} needs task=, the data to calibrate on.")
    return fit_compensation(model, mask, task, method, add_bias=add_bias)


def _warn_of_idle(expectation: Expectation, sites: Sequence[Site]) -> None:
    """Warn if a site that loses heads does not run: it cannot be verified."""
    idle = [site.name for site in sites if expectation.is_idle(site)]
    if idle:
        warnings.warn(
            f"Not verified: {', '.join(idle)} did not run on the test batch. Pass a batch that uses them with batch=.",
            stacklevel=3,
        )


def _check(expectation: Expectation, small: nn.Module, sites: Sites) -> None:
    """Raise if the pruned model is wrong. The error has the model, so that no work is lost.

    Only architectures that no family describes can fail to run at all.
    """
    try:
        expectation.check(small)
    except VerificationError as error:
        raise VerificationError(error.reason, _ADVICE, model=small) from error
    except (ModelError, RuntimeError, ValueError, TypeError, IndexError) as error:
        if not any(site.family == "generic" for site in sites):
            raise VerificationError(f"The pruned model does not run: {error}", _ADVICE, model=small) from error
        raise NotRemovable(
            f"Heads of {type(small).__name__} can be masked but not removed: it does not run with fewer ({error}). "
            "docs/how-to/add-a-family.md shows how to describe it."
        ) from error
