"""Every chooser keeps to every shape, under every kind of budget, and refuses what cannot be before the model runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import headcount as hc
from headcount.errors import UsageError
from headcount.pruning.pipeline import choosers
from tokens import sentences, word_tokenizer

OPTIONS: dict[str, dict[str, Any]] = {
    "rank": {"choose": "magnitude"},
    "fisher": {"choose": "fisher"},
    "greedy": {"choose": "greedy", "candidates": 1, "group": 2, "compensate": "none"},
    "l0": {"choose": "l0", "steps": 1, "tune": 0},
    "subset": {"choose": "subset", "steps": 1, "tune": 0},
}
SHAPES = {
    "even:first=1": 7,
    "uniform": 6,
    "at-least=1:multiple=2": 8,
    "group:at-least=2": 6,
    "uniform:even:group:multiple=3": 6,
}


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=99, hidden_size=12, intermediate_size=8, num_hidden_layers=2, num_attention_heads=6,
        num_key_value_heads=2, head_dim=4,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def task() -> Any:
    return hc.task("language-modelling", texts=sentences(4), tokenizer=word_tokenizer())


def test_all_are_tried() -> None:
    assert set(OPTIONS) == {name for name in choosers if name != "given"}


@pytest.mark.parametrize("chooser", OPTIONS)
@pytest.mark.parametrize("text", SHAPES)
def test_what_stays_has_the_shape(chooser: str, text: str, model: Any, task: Any) -> None:
    shape, keep = hc.Shape.parse(text), SHAPES[text]
    pruned = hc.prune(model, task, keep=hc.Budget(heads=keep), shape=shape, verify=False, **OPTIONS[chooser])
    assert len(pruned.mask.kept) == keep
    assert not shape.violations(pruned.mask, hc.locate(model).groups)
    assert pruned.record.signature.arguments["shape"] == str(shape)
    assert f":{shape}" in pruned.record.parts.pipeline


@pytest.mark.parametrize("chooser", OPTIONS)
@pytest.mark.parametrize("keep", ["50%", "85%params"])
def test_other_budgets_take_the_nearest_number_that_has_the_shape(
    chooser: str, keep: str, model: Any, task: Any
) -> None:
    shape = hc.Shape(groups="even", multiple=2, at_least=1)
    pruned = hc.prune(model, task, keep=keep, shape=shape, verify=False, **OPTIONS[chooser])
    assert not shape.violations(pruned.mask, hc.locate(model).groups)
    if keep == "50%":
        assert len(pruned.mask.kept) == 6
    else:
        before, after = (sum(weight.numel() for weight in each.parameters()) for each in (model, pruned.model))
        assert after <= 0.85 * before


@pytest.mark.parametrize("chooser", OPTIONS)
def test_what_cannot_be_is_refused_before_the_model_runs(
    chooser: str, model: Any, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LlamaForCausalLM, "forward", lambda *_, **__: pytest.fail("the model ran"))
    with pytest.raises(UsageError, match=r"Cannot keep 7 of 12 heads in 2 layers .*; the nearest number is 6 or 8"):
        hc.prune(model, task, keep=hc.Budget(heads=7), rule="uniform", **OPTIONS[chooser])


def test_heads_that_are_given_must_have_the_shape(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = hc.locate(model).mask(off=["decoder.1.0", "decoder.1.3"])
    assert hc.prune(model, choose=mask, groups="even").mask == mask
    monkeypatch.setattr(LlamaForCausalLM, "forward", lambda *_, **__: pytest.fail("the model ran"))
    with pytest.raises(UsageError, match=r"\(multiples of 3 in every layer\): decoder.1 keeps 4 heads"):
        hc.prune(model, choose=mask, multiple=3)


def test_gates_without_a_budget_end_in_the_shape(model: Any, task: Any) -> None:
    shape = hc.Shape(rule="uniform", unit="group")
    pruned = hc.prune(model, task, choose="l0", penalty=0.1, steps=1, tune=0, shape=shape, verify=False)
    assert not shape.violations(pruned.mask, hc.locate(model).groups)
