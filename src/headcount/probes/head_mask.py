"""head_mask: a context manager that replaces the argument which transformers 5 silently ignores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from headcount.errors import MaskError
from headcount.probes.masks import masked
from headcount.sites.locate import locate
from headcount.sites.site import Sites

_ONE_MASK = ("bert", "gpt2")  # families whose layers passed one mask to their self-attention and cross-attention
_BOTH_STACKS = "t5"  # family whose encoder-decoders took one mask for both stacks, if these have as many layers


@contextmanager
def head_mask(
    model: nn.Module,
    head_mask: Tensor | None = None,
    *,
    decoder_head_mask: Tensor | None = None,
    cross_attn_head_mask: Tensor | None = None,
) -> Iterator[None]:
    """Apply a head mask inside the block, as `model(..., head_mask=mask)` did before transformers 5.

    A mask is [heads] for all layers alike, [layers, heads] or [layers, batch, heads, 1, 1]. Columns are heads of the
    original model; 1 keeps a head and 0 masks it. Values in between and gradients work.

    Args:
        model: The model.
        head_mask: Mask of the encoder of an encoder-decoder, or of the only stack of another model.
        decoder_head_mask: Mask of the decoder's self-attention. By default 1; in T5 and its relatives with as many
            decoder as encoder layers, `head_mask`, as it was there. Give ones to mask the encoder alone.
        cross_attn_head_mask: Mask of the cross-attention. By default 1; in decoders of BERT's relatives and GPT-2 with
            cross-attention, the mask of the decoder's self-attention, as their layers had one mask for both.

    Raises:
        MaskError: If the model has no such attention, or the shape does not fit.
    """
    sites = locate(model)
    stack = "encoder" if "encoder" in sites.kinds else sites.kinds[0]
    arguments = ((stack, head_mask), ("decoder", decoder_head_mask), ("cross", cross_attn_head_mask))
    masks = {kind: mask for kind, mask in arguments if mask is not None}
    if len(masks) < sum(mask is not None for _, mask in arguments):
        raise MaskError(
            f"{type(model).__name__} has one stack: head_mask and decoder_head_mask are the same; give one of them."
        )
    for kind in masks:
        if kind not in sites.kinds:
            raise MaskError(f"{type(model).__name__} has no {kind} attention to mask; it has {', '.join(sites.kinds)}.")
    stacks = [[site.family for site in sites if site.kind == kind] for kind in ("encoder", "decoder")]
    if "encoder" in masks and "decoder" not in masks and stacks[0] == stacks[1] and _BOTH_STACKS in stacks[0]:
        masks["decoder"] = masks["encoder"]
    crossing = {site.family for site in sites if site.kind == "cross"}
    if "decoder" in masks and "cross" not in masks and crossing and crossing.issubset(_ONE_MASK):
        masks["cross"] = masks["decoder"]
    rows = {kind: _rows(sites, kind, _tensor(mask)) for kind, mask in masks.items()}
    columns = [rows[site.kind][site.layer][..., list(site.heads)] if site.kind in rows else None for site in sites]
    with masked(model, _join(sites, columns)):
        yield


def _tensor(mask: object) -> Tensor:
    try:
        return torch.as_tensor(mask)
    except (TypeError, ValueError, RuntimeError) as error:
        raise MaskError(
            f"A head mask is a tensor; got {type(mask).__name__} ({error}). hc.masked takes a HeadGrid, such as "
            "sites.mask(off=[...])."
        ) from error


def _rows(sites: Sites, kind: str, mask: Tensor) -> dict[int, Tensor]:
    """layer -> [heads] or [batch, heads] over the original heads."""
    layers = [site for site in sites if site.kind == kind]
    totals = sorted({site.total for site in layers})
    shapes = f"[{totals[-1]}], [{len(layers)}, {totals[-1]}] or [{len(layers)}, batch, {totals[-1]}, 1, 1]"
    if mask.dim() == 1:
        mask = mask.expand(len(layers), -1)
    elif mask.dim() == 5 and mask.shape[3:] == (1, 1):
        mask = mask[:, 0, :, 0, 0] if mask.shape[1] == 1 else mask[..., 0, 0]
    elif mask.dim() != 2:
        raise MaskError(f"A head mask for {kind} attention of this model is {shapes}; got {list(mask.shape)}.")
    if mask.shape[0] != len(layers) or mask.shape[-1] != totals[-1]:
        shared = " One module serves all layers of this model." if len(layers) == 1 else ""
        raise MaskError(f"A head mask for {kind} attention of this model is {shapes}; got {list(mask.shape)}.{shared}")
    return {site.layer: mask[index] for index, site in enumerate(layers)}


def _join(sites: Sites, columns: list[Tensor | None]) -> Tensor:
    """[H] or [B, H] over all heads of the model, 1 if no mask was given."""
    present = [column for column in columns if column is not None]
    if not present:
        return torch.ones(len(sites.heads))
    batch = next((column.shape[:-1] for column in present if column.dim() == 2), torch.Size())
    like = present[0] if present[0].is_floating_point() else present[0].float()
    full = [
        like.new_ones(*batch, site.num_heads) if column is None else column.to(like).expand(*batch, -1)
        for site, column in zip(sites, columns, strict=True)
    ]
    return torch.cat(full, dim=-1)
