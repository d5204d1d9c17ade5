"""Site masks say where attention can be: they are compared with attention itself."""

from __future__ import annotations

import pytest
import torch

import headcount as hc
import zoo
from behaviour import hooks
from headcount.probes.site_masks import allowed_keys, site_masks
from headcount.sites.inputs import example_batch


@pytest.mark.parametrize("architecture", ["bert", "deberta-v2", "modernbert", "gpt_neo", "gemma2", "gemma3", "t5"])
def test_masks_are_where_attention_is_zero(architecture: str) -> None:
    model = zoo.build(architecture)
    batch = example_batch(model, batch=2, length=20, padded=False)
    with torch.no_grad(), site_masks(model) as masks, hc.tapped(model, "attention") as taps:
        model(**batch)
    for site, attention_BHQK in taps.items():
        allowed_BQK = torch.ones_like(attention_BHQK[:, 0], dtype=torch.bool)
        if site.key in masks:
            allowed_BQK &= allowed_keys(site, masks[site.key])
        assert torch.equal((attention_BHQK > 0).any(1), allowed_BQK), site.name
    assert not hooks(model)
