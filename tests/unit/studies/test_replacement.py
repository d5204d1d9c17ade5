"""Replacements: each against a loop by hand, and a planted head that says the same of everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

import headcount as hc
from games import one_layer
from headcount.errors import UsageError
from headcount.studies.replacement import replacements
from tokens import sentences, word_tokenizer


def own_output(model: nn.Module, rows: int = 8) -> Any:
    """The loss is the distance from what the whole model gives: whatever changes it makes it worse."""
    ids = torch.randint(0, 50, (rows, 5), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        whole = {tuple(row.tolist()): out for row, out in zip(ids, model(ids).last_hidden_state, strict=True)}

    def nll(live: nn.Module, batch: Any) -> Tensor:
        target = torch.stack([whole[tuple(row.tolist())] for row in batch["input_ids"]])
        return (live(**batch).last_hidden_state - target).square().sum((1, 2))

    return hc.task.of([{"input_ids": ids[:4]}, {"input_ids": ids[4:]}], nll=nll)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    """Head 0 gives the same for every input: its values are constant."""
    live = one_layer()
    attention = live.encoder.layer[0].attention.self
    with torch.no_grad():
        attention.value.weight[:8] = 0
        attention.value.bias[:8] = 3.0
    return live


def test_a_head_that_says_the_same_of_everything_matters_by_zero_alone(model: nn.Module) -> None:
    parts = replacements(model, own_output(model)).parts
    changes = {how: found["encoder.0.0"].difference for how, found in parts.effects.items()}
    assert changes["zero"] > 0.1
    assert changes["mean"] == pytest.approx(0, abs=1e-9)
    assert changes["resample"] == pytest.approx(0, abs=1e-9)
    assert parts.effects["resample"]["encoder.0.1"].difference > 1e-4, "another head is not the same everywhere"
    assert set(parts.rank_correlations) == {"zero / mean", "zero / resample", "mean / resample"}


def test_resample_is_the_output_on_the_example_before(model: nn.Module) -> None:
    batch = {"input_ids": torch.arange(15).view(3, 5)}
    mask = hc.locate(model).mask(off="encoder.0.2")
    with torch.no_grad():
        with hc.tapped(model, "outputs") as taps:
            model(**batch)
        with hc.masked(model, mask, replace="resample"), hc.tapped(model, "outputs") as moved:
            model(**batch)
    before, after = taps["encoder.0"], moved["encoder.0"]
    for row in range(3):
        for head in range(4):
            expected = before[row - 1 if head == 2 else row, :, head]
            np.testing.assert_allclose(after[row, :, head], expected, rtol=1e-12)


def test_what_cannot_be_replaced_is_refused(model: nn.Module) -> None:
    mask = hc.locate(model).mask(off="encoder.0.2")
    with pytest.raises(UsageError, match="needs at least two examples"), hc.masked(model, mask, replace="resample"):
        model(torch.zeros(1, 5, dtype=torch.long))


def test_an_example_that_is_alone_in_its_batch_is_measured_with_others() -> None:
    """The last of 9 texts in batches of 4 was refused, after all others had been measured."""
    torch.manual_seed(0)
    size = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16, "vocab_size": 99, "initializer_range": 0.5}
    reader = GPT2LMHeadModel(GPT2Config(**size, bos_token_id=1, eos_token_id=2)).eval()
    texts = {"texts": sentences(9), "tokenizer": word_tokenizer()}
    task = hc.task("language-modelling", **texts, batch_size=4, metric="loss")
    parts = replacements(reader, task).parts
    assert parts.value == pytest.approx(task.quality(reader).value, rel=1e-6)
    ablated = hc.score("ablation", reader, task)
    for head, effect in parts.effects["zero"].items():
        assert effect.examples == 9
        assert effect.difference == pytest.approx(ablated[head], abs=1e-6)
    assert all(effect.difference for effect in parts.effects["resample"].values())
