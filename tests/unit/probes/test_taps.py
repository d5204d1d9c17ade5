"""Taps: what comes back, in which form, from how many runs."""

from __future__ import annotations

import copy
from contextlib import ExitStack

import pytest
import torch
from torch import Tensor, nn

import headcount as hc
import zoo
from behaviour import outputs
from headcount.errors import UnknownName, UsageError
from headcount.sites.site import Site


def test_single_and_several(bert: nn.Module) -> None:
    with hc.tapped(bert, "outputs") as taps:
        outputs(bert)
    assert taps["encoder.2"].shape == (2, 12, 4, 16)
    assert [site.name for site, _ in taps.items()] == ["encoder.0", "encoder.1", "encoder.2"]
    with hc.tapped(bert, ["max"]) as taps:
        outputs(bert)
    assert taps["encoder", 2]["max"].shape == (2, 4, 12)


def test_any_reduction_and_a_sink(bert: nn.Module) -> None:
    """A user's own reduction, streamed: nothing is kept but what the sink keeps."""
    seen: dict[str, Tensor] = {}

    def diagonal(attention_BHQK: Tensor) -> Tensor:
        return attention_BHQK.diagonal(dim1=-2, dim2=-1)

    def sink(site: Site, value: Tensor) -> None:
        seen[site.name] = value

    with hc.tapped(bert, diagonal, sink=sink) as taps:
        outputs(bert)
    with hc.tapped(bert, "attention") as full:
        outputs(bert)
    for site in hc.locate(bert):
        assert torch.equal(seen[site.name], diagonal(full[site.key]))
        assert taps.calls(site.key) == []


def test_several_runs(bert: nn.Module) -> None:
    with hc.tapped(bert, "max") as taps:
        outputs(bert)
        outputs(bert)
        assert len(taps.calls("encoder.0")) == 2
        with pytest.raises(UsageError, match="ran 2 times"):
            taps["encoder.0"]
        taps.clear()
        outputs(bert)
    assert taps["encoder.0"].shape == (2, 4, 12)


def test_shared_module_runs_once_per_layer() -> None:
    albert = zoo.build("albert")
    with hc.tapped(albert, "outputs") as taps:
        outputs(albert)
    assert len(taps.calls("encoder.0")) == 3


def test_empty_sites_have_nothing_to_read(bert: nn.Module) -> None:
    small = hc.remove(bert, hc.locate(bert).mask(off="encoder.0.*"))
    with hc.tapped(small, ("outputs", "max")) as taps:
        outputs(small)
    assert [site.name for site, _ in taps.items()] == ["encoder.1", "encoder.2"]
    with pytest.raises(UsageError, match="no heads left"):
        taps["encoder.0"]


@pytest.mark.parametrize("first_left", [0, 1])
def test_blocks_left_in_any_order_leave_nothing(bert: nn.Module, first_left: int) -> None:
    before = bert.config._attn_implementation
    blocks = [ExitStack(), ExitStack()]
    taps = [block.enter_context(hc.tapped(bert, "max")) for block in blocks]
    blocks[first_left].close()
    outputs(bert)
    assert [len(tap.calls("encoder.0")) for tap in taps] == [first_left, 1 - first_left]
    blocks[1 - first_left].close()
    assert bert.config._attn_implementation == before == "sdpa"


def test_a_copy_made_inside_a_block_has_its_backend_again_after_it(bert: nn.Module) -> None:
    blocks = [ExitStack(), ExitStack()]
    for block in blocks:
        block.enter_context(hc.tapped(bert, "max"))
    other = copy.deepcopy(copy.deepcopy(bert))
    for block in blocks:
        assert other.config._attn_implementation == "eager", "the block reads it too"
        block.close()
    assert other.config._attn_implementation == bert.config._attn_implementation == "sdpa"
    assert copy.deepcopy(other).config._attn_implementation == "sdpa"


def test_two_of_one_name(bert: nn.Module) -> None:
    with pytest.raises(UsageError, match="same name"), hc.tapped(bert, (lambda a: a.amax(-1), lambda a: a.amin(-1))):
        pass


def test_unknown_thing(bert: nn.Module) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'entropy'"), hc.tapped(bert, "entropi"):
        pass


def test_taps_carry_gradients(bert: nn.Module) -> None:
    """Head output times its gradient is the gradient of the mask at one (Michel, equation 2)."""
    from headcount.sites.inputs import example_batch

    mask = torch.ones(12, requires_grad=True)
    with hc.masked(bert, mask), hc.tapped(bert, "outputs") as taps:
        loss = bert(**example_batch(bert)).logits.tanh().sum()
        contexts = [taps[site.key] for site in hc.locate(bert)]
        gradients = torch.autograd.grad(loss, [mask, *contexts])
    expected = torch.cat([(c * g).sum((0, 1, 3)) for c, g in zip(contexts, gradients[1:], strict=True)])
    torch.testing.assert_close(gradients[0], expected)


def test_attention_that_is_returned_on_request_is_read_after_pruning() -> None:
    """A pruned layer of MPNet takes `output_attentions` as one of **options."""
    model = zoo.build("mpnet")
    mask = hc.locate(model).mask(off=["encoder.1.0", "encoder.1.3"])
    small = hc.remove(model, mask)
    with hc.tapped(model, "attention") as before, hc.masked(model, mask):
        outputs(model)
    with hc.tapped(small, "attention") as after:
        outputs(small)
    torch.testing.assert_close(after["encoder.1"], before["encoder.1"][:, 1:3])
    torch.testing.assert_close(after["encoder.2"], before["encoder.2"])


def test_pruned_attentions_keep_their_layers(llama: nn.Module) -> None:
    """outputs.attentions of a model with an empty layer still has one entry per layer (eager)."""
    llama.set_attn_implementation("eager")
    small = hc.remove(llama, hc.locate(llama).mask(off=["decoder.1.*", "decoder.0.2"]))
    found = small(input_ids=torch.tensor([[3, 4, 5]]), output_attentions=True).attentions
    assert [attention.shape[1] for attention in found] == [3, 0, 4]


@pytest.mark.parametrize("fullgraph", [pytest.param(False, marks=pytest.mark.slow), True])
def test_taps_of_a_compiled_model(bert: nn.Module, fullgraph: bool) -> None:
    from headcount.sites.inputs import example_batch

    torch._dynamo.reset()
    compiled, batch = torch.compile(bert, backend="eager", fullgraph=fullgraph), example_batch(bert)
    with torch.no_grad():
        compiled(**batch)
        with hc.tapped(bert, ("outputs", "max")) as plain:
            bert(**batch)
        with hc.tapped(compiled, ("outputs", "max")) as taps:
            compiled(**batch)
    for site, seen in plain.items():
        for name in ("outputs", "max"):
            torch.testing.assert_close(taps[site.key][name], seen[name])
