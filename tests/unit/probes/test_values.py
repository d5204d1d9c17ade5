"""Values: a head's own attention times what `recomputed` calls its values is its own output, whatever the layout."""

from __future__ import annotations

import pytest
import torch

import headcount as hc
import zoo
from behaviour import hooks, identical, outputs, tolerance
from headcount.errors import UsageError
from headcount.probes.values import recomputed
from headcount.sites.inputs import example_batch

LAYOUTS = ("bert", "distilbert", "deberta-v2", "gpt2", "gpt_neox", "bloom", "opt", "llama", "phi3", "t5", "bart")


@pytest.mark.parametrize("architecture", LAYOUTS)
def test_own_attention_gives_the_own_output(architecture: str) -> None:
    model = zoo.build(architecture, "eager")
    batch, sites = example_batch(model), hc.locate(model)
    with torch.no_grad(), hc.tapped(model, "attention") as taps:
        model(**batch)
    seen: list[float] = []

    def output(head: hc.Head) -> object:
        attention_BQK = taps[head.site][:, sites[head.site].heads.index(head.index)]

        def function(own_BQD: torch.Tensor, values_BKD: torch.Tensor) -> torch.Tensor:
            again_BQD = attention_BQK @ values_BKD
            seen.append(float((again_BQD - own_BQD).abs().max() / own_BQD.abs().max()))
            return again_BQD

        return function

    before = outputs(model, batch)
    with torch.no_grad(), recomputed(model, {head: output(head) for head in sites.heads}):
        model(**batch)
    assert len(seen) == len(sites.heads)
    assert max(seen) < tolerance(model)
    assert identical(outputs(model, batch), before)


def test_pruned_sites_know_their_values() -> None:
    """The value of a head that is left is the one it had: groups of key/value heads keep their numbers."""
    model = zoo.build("llama", "eager")
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.1.0", "decoder.1.1", "decoder.2.3"]))
    batch, sites = example_batch(small), hc.locate(small)
    with torch.no_grad(), hc.tapped(small, ["attention", "outputs"]) as taps:
        small(**batch)
    head = hc.Head.parse("decoder.1.3")
    place = sites[head.site].heads.index(3)
    seen = []

    def function(own_BQD: torch.Tensor, values_BKD: torch.Tensor) -> torch.Tensor:
        seen.append((own_BQD, taps[head.site]["attention"][:, place] @ values_BKD))
        return own_BQD

    with torch.no_grad(), recomputed(small, {head: function}):
        small(**batch)
    torch.testing.assert_close(*seen[0])


def test_nothing_is_left_behind_and_what_is_cached_is_refused() -> None:
    model = zoo.build("bart", "eager")
    before = hooks(model)
    head = hc.Head.parse("cross.0.1")
    batch = {name: value for name, value in example_batch(model).items() if name != "decoder_input_ids"}
    with pytest.raises(UsageError, match="use_cache=False"), recomputed(model, {head: lambda own, _: own}):
        model.generate(**batch, max_new_tokens=3, min_new_tokens=3)
    assert hooks(model) == before
