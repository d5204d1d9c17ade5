"""Sides: whether a site of an encoder-decoder works on the source or on the target."""

from __future__ import annotations

from torch import nn

from headcount.hooks import is_encoder_decoder
from headcount.sites.site import Site


def of_source(model: nn.Module, site: Site) -> bool:
    """Whether a site has a position per source token, in a model with an encoder and a decoder."""
    return is_encoder_decoder(model) and not of_target(model, site)


def of_target(model: nn.Module, site: Site) -> bool:
    """Whether a site has a position per target token, in a model with an encoder and a decoder."""
    return is_encoder_decoder(model) and site.kind in ("decoder", "cross")
