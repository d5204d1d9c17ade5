"""Masks: numbers that multiply each head's output just before the output projection. Knows sites, not tasks.

Shapes: B batch, T tokens, H heads of the model (or of one site), D head size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import MaskError, UsageError
from headcount.heads import Head, HeadGrid
from headcount.hooks import Hooks
from headcount.probes.means import mean_outputs
from headcount.sites.locate import locate
from headcount.sites.sides import of_source
from headcount.sites.site import Site, Sites

Mask = HeadGrid | Tensor | np.ndarray
Means = Mapping[tuple[str, int], Tensor]  # site -> [H, D]
Replace = Literal["zero", "mean", "resample"] | Means


@contextmanager
def masked(
    model: nn.Module,
    mask: Mask,
    *,
    replace: Replace = "zero",
    calibration: Iterable[Mapping[str, object]] | None = None,
    repeat: int = 1,
) -> Iterator[None]:
    """Multiply the output of every head by its value in `mask` inside the block.

    Args:
        model: The model.
        mask: A HeadGrid, or a tensor [H] or [B, H] with columns in the order of `hc.locate(model).heads`. A tensor may
            require gradients and may be changed in place inside the block.
        replace: What a masked head outputs instead: "zero"; "mean", its mean output over `calibration`; the means that
            `hc.mean_outputs` returned; or "resample", its output for the previous example of the batch.
        calibration: Batches over which "mean" averages.
        repeat: Rows of the model's batch per example, and per row of a [B, H] mask: the number of beams in beam search.

    Raises:
        MaskError: If the mask does not fit the model.
    """
    sites = locate(model)
    values = site_values(sites, mask)
    means = _means(model, replace, calibration)
    if means:
        _check_means([site for site in sites if site.num_heads and values[site.key] is not None], means)
    if repeat < 1:
        raise UsageError(f"repeat (batch rows per mask row) must be at least 1; got {repeat}.")
    with Hooks(model) as hooks:
        for site in sites:
            gate = values[site.key]
            if site.num_heads and gate is not None:
                rows = 1 if of_source(model, site) else repeat  # an encoder runs before rows are repeated for the beams
                change = multiply(
                    site, gate, means.get(site.key), repeat, resample=rows if replace == "resample" else None
                )
                hooks.change_input(site.entry, change)
        yield


def site_values(sites: Sites, mask: Mask) -> dict[tuple[str, int], Callable[[], Tensor] | None]:
    """For each site, a function that returns its current values [H] or [B, H]; None if all are 1."""
    if isinstance(mask, HeadGrid):
        return {key: _constant(values) for key, values in align(sites, mask).items()}
    if not isinstance(mask, Tensor | np.ndarray):
        raise MaskError(
            f"A mask is a HeadGrid, such as sites.mask(off=[...]), or a tensor over all heads; got "
            f"{type(mask).__name__}."
        )
    tensor = torch.as_tensor(mask)
    width = len(sites.heads)
    if tensor.dim() not in (1, 2) or tensor.shape[-1] != width:
        raise MaskError(
            f"A mask tensor for this model is [{width}] or [batch, {width}], columns in the order of sites.heads; "
            f"got {list(tensor.shape)}."
        )
    return {site.key: _live(tensor, heads) for site, heads in sites.columns()}


def align(sites: Sites, mask: HeadGrid) -> dict[tuple[str, int], np.ndarray]:
    """The values of a grid by site. Raises MaskError if the grid does not have the heads of this model.

    Heads that were already removed from the model may be in the grid, with the value 0.
    """
    numbers = dict(zip(mask.heads, mask.numbers(), strict=True))
    if np.isnan(mask.numbers()).any():
        raise MaskError(f"The mask is NaN for {_some([h for h in mask.heads if np.isnan(numbers[h])])}.")
    missing = [head for head in sites.heads if head not in numbers]
    if missing:
        raise MaskError(f"The mask has no value for {_some(missing)} of this model: it was made for another model.")
    present, totals = set(sites.heads), {site.key: site.total for site in sites}
    extra = [head for head in mask.heads if head not in present]
    unknown = [head for head in extra if head.index >= totals.get(head.site, 0)]
    if unknown:
        raise MaskError(
            f"The mask contains {_some(unknown)}, which this model never had: it was made for another model."
        )
    gone = [head for head in extra if numbers[head] != 0]
    if gone:
        raise MaskError(f"The mask keeps {_some(gone)}, already removed from this model. Set them to 0 in the mask.")
    return {site.key: np.array([numbers[head] for head in site.head_names()]) for site in sites}


def _some(heads: list[Head]) -> str:
    names = ", ".join(map(str, heads[:3]))
    return names if len(heads) <= 3 else f"{names} and {len(heads) - 3} more heads"


def _live(tensor: Tensor, heads: slice) -> Callable[[], Tensor]:
    return lambda: tensor[..., heads]


def _constant(values: np.ndarray) -> Callable[[], Tensor] | None:
    if np.all(values == 1):
        return None
    gate = torch.as_tensor(values)
    return lambda: gate


def _means(model: nn.Module, replace: Replace, calibration: Iterable[Mapping[str, object]] | None) -> Means:
    if isinstance(replace, Mapping):
        return replace
    if replace in ("zero", "resample"):
        return {}
    if replace != "mean":
        raise UsageError(f"replace must be 'zero', 'mean', 'resample' or a dict of means by site; got {replace!r}.")
    if calibration is None:
        raise UsageError("replace='mean' needs calibration=, the batches to average the outputs over.")
    return mean_outputs(model, calibration)


def _check_means(sites: Iterable[Site], means: Means) -> None:
    for site in sites:
        shape = list(means[site.key].shape) if site.key in means else None
        if shape != [site.num_heads, site.head_dim]:
            seen = "nothing" if shape is None else f"{shape}"
            raise MaskError(
                f"Means must be a dict from (kind, layer) to [heads, head size], as mean_outputs returns it; "
                f"for {site.key} expected {[site.num_heads, site.head_dim]}, got {seen}."
            )


def multiply(
    site: Site,
    gate: Callable[[], Tensor],
    mean_HD: Tensor | None = None,
    repeat: int = 1,
    *,
    resample: int | None = None,
) -> Callable[[Tensor], Tensor]:
    """A function of the context [.., H*D] that scales each head, towards its mean if one is given.

    resample: scale towards the output for the previous example; rows per example, if the gate has no rows.
    """

    def function(context: Tensor) -> Tensor:
        values = gate()
        scale = _broadcast(values.to(context.device, context.dtype), context, site, repeat)
        if resample is not None:
            examples = len(values) if values.dim() == 2 else _examples(context, site, resample)
            return context * scale + (1 - scale) * _of_previous(context, examples)
        if mean_HD is None:
            return context * scale
        return context * scale + (1 - scale) * mean_HD.to(context.device, context.dtype).flatten()

    return function


def _examples(context: Tensor, site: Site, repeat: int) -> int:
    """Number of examples of a context with so many rows per example."""
    if len(context) % repeat:
        raise MaskError(f"{site.name} received a batch of {len(context)}, no multiple of repeat={repeat}.")
    return len(context) // repeat


def _of_previous(context: Tensor, examples: int) -> Tensor:
    """The context of the previous example at each row; of the last example for the first."""
    if examples < 2:
        raise UsageError("replace='resample' needs at least two examples in every batch; got one. Use larger batches.")
    return context.roll(len(context) // examples, dims=0)


def _broadcast(gate: Tensor, context: Tensor, site: Site, repeat: int) -> Tensor:
    """[H] -> [H*D]; [B, H] -> [B, 1, .., H*D] for a context [B, .., H*D]."""
    scale = gate.unsqueeze(-1).expand(*gate.shape, site.head_dim).flatten(-2)
    if gate.dim() == 1:
        return scale
    rows = context.shape[0]
    if rows == gate.shape[0] * repeat:
        scale = scale.repeat_interleave(repeat, dim=0) if repeat > 1 else scale
    elif rows != gate.shape[0]:  # an encoder runs before its rows are repeated for the beams
        raise MaskError(
            f"The mask has {gate.shape[0]} rows, {site.name} received a batch of {rows}. One row per example; "
            "for beam search pass repeat=number of beams."
        )
    return scale.reshape(rows, *(1,) * (context.dim() - 2), -1)
