"""Sides: whether a site works on text, and in an encoder-decoder whether on the source or on the target."""

from __future__ import annotations

from torch import nn

from headcount.hooks import is_encoder_decoder
from headcount.sites.site import Site

_OTHER_TOWERS = ("vision", "visual", "image", "audio")  # how the names of their modules begin


def of_source(model: nn.Module, site: Site) -> bool:
    """Whether a site has a position per source token, in a model with an encoder and a decoder."""
    return is_encoder_decoder(model) and not of_target(model, site)


def of_target(model: nn.Module, site: Site) -> bool:
    """Whether a site has a position per target token, in a model with an encoder and a decoder."""
    return is_encoder_decoder(model) and site.kind in ("decoder", "cross")


def of_text(site: Site) -> bool:
    """Whether a site has a position per token: not one of an image or sound beside the text, as in CLIP."""
    return not any(part.startswith(_OTHER_TOWERS) for part in (site.kind, *site.path.split(".")))
