"""Blocks that replace what a module computes: copies made inside them, and blocks left in another order."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager, ExitStack

import pytest
import torch
from torch import Tensor, nn

import headcount as hc
from headcount.probes.projections import Projection, projected
from headcount.probes.replay import remembered, replayed
from headcount.sites.inputs import example_batch


def logits(model: nn.Module) -> Tensor:
    with torch.no_grad():
        return model(**example_batch(model)).logits


def scaled(model: nn.Module, factor: float) -> AbstractContextManager[None]:
    """A block with another output projection at the first site."""
    site = hc.locate(model)[0]
    return projected(model, {site.key: Projection(factor * Projection.of(site).weight_OK, None)})


def replaced_forwards(model: nn.Module) -> list[str]:
    return [name for name, module in model.named_modules() if "forward" in module.__dict__]


def test_a_copy_made_inside_a_block_is_plain_after_it(bert: nn.Module) -> None:
    plain = logits(bert)
    with scaled(bert, 0.5):
        duplicate, changed = copy.deepcopy(bert), logits(bert)
        assert torch.equal(logits(duplicate), changed)
    assert not torch.equal(changed, plain)
    assert torch.equal(logits(duplicate), plain)
    with torch.no_grad():
        duplicate.get_submodule(hc.locate(bert)[0].path).query.weight.mul_(2)
    assert not torch.equal(logits(duplicate), plain)
    assert torch.equal(logits(bert), plain)


def test_a_copy_made_during_a_replay_reads_its_input(bert: nn.Module) -> None:
    batch = example_batch(bert)
    with remembered(bert, len(batch["input_ids"])) as memory:
        plain = logits(bert)
    with replayed(bert, memory, hc.locate(bert)[2]):
        duplicate = copy.deepcopy(bert)
    batch["input_ids"] = batch["input_ids"].flip(0)
    with torch.no_grad():
        assert torch.equal(duplicate(**batch).logits, bert(**batch).logits)
    assert torch.equal(logits(duplicate), plain)


@pytest.mark.parametrize("first_left", [0, 1])
def test_blocks_left_in_any_order_leave_nothing(bert: nn.Module, first_left: int) -> None:
    plain = logits(bert)
    blocks = [ExitStack(), ExitStack()]
    expected = []
    for factor in (0.5, 2.0):
        with scaled(bert, factor):
            expected.append(logits(bert))
    for block, factor in zip(blocks, (0.5, 2.0), strict=True):
        block.enter_context(scaled(bert, factor))
    assert torch.equal(logits(bert), expected[1])
    blocks[first_left].close()
    assert torch.equal(logits(bert), expected[1 - first_left])
    blocks[1 - first_left].close()
    assert torch.equal(logits(bert), plain)
    assert replaced_forwards(bert) == []
