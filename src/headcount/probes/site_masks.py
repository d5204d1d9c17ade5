"""Site masks: the keys that each query of a site may attend to, by the attention mask that the site is given.

Sliding windows and chunks are in these masks, whatever the config calls them.
Shapes: B batch, Q queries, K keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headcount.hooks import Hooks
from headcount.probes.padding import attends
from headcount.sites.locate import locate
from headcount.sites.site import Site, SiteKey

_NAMES = ("attention_mask", "mask")  # of the argument; T5 has the second


@contextmanager
def site_masks(model: nn.Module) -> Iterator[dict[SiteKey, Tensor]]:
    """The masks [B, 1, Q, K] that sites were given in their last run inside the block. Sites without one are left out.

    Layers with the same mask have the same tensor.
    """
    masks: dict[SiteKey, Tensor] = {}
    with Hooks(model) as hooks:
        for site in locate(model):
            hooks.see_arguments(site.module, partial(_see, masks, site.key))
        yield masks


def allowed_keys(site: Site, mask: Tensor) -> Tensor:
    """[B, Q, K], on the CPU: whether a mask lets a query attend to a key. B and Q may be 1."""
    allowed_BHQK = attends(mask)
    buffer = getattr(site.module, "bias", None)  # of GPT-Neo, whose local layers have a window of their own
    if isinstance(buffer, Tensor) and buffer.dtype == torch.bool and buffer.dim() == 4:
        queries, keys = mask.shape[-2:]
        allowed_BHQK = allowed_BHQK & buffer[..., keys - queries : keys, :keys]
    return allowed_BHQK.any(1).cpu()


def _see(masks: dict[SiteKey, Tensor], key: SiteKey, arguments: Mapping[str, Any]) -> None:
    mask = next((arguments[name] for name in _NAMES if isinstance(arguments.get(name), Tensor)), None)
    if mask is not None and mask.dim() == 4:
        masks[key] = mask
    else:
        masks.pop(key, None)
