"""Budgets: what they count, how they are written, and that the smaller model keeps to them."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

import headcount as hc
import zoo
from headcount.errors import UnknownName, UsageError
from headcount.selection.select import most_within, select
from headcount.surgery.price import Price, in_heads
from tokens import sentences, word_tokenizer


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("10", hc.Budget(heads=10)),
        ("40%", hc.Budget(share=0.4)),
        ("40%heads", hc.Budget(share=0.4)),
        ("90%params", hc.Budget(share=0.9, unit="parameters")),
        ("5Mparams", hc.Budget(parameters=5_000_000)),
        ("1.5Gflops", hc.Budget(flops=1.5e9)),
        ("75%ms", hc.Budget(share=0.75, unit="milliseconds")),
        ("12.5ms", hc.Budget(milliseconds=12.5)),
    ],
)
def test_as_written_on_the_command_line(text: str, budget: hc.Budget) -> None:
    assert hc.Budget.parse(text) == budget


@pytest.mark.parametrize("text", ["", "many", "10%%", "-3", "5apples", "%", "1.5", "1e400"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError):
        hc.Budget.parse(text)


def test_a_percentage_is_refused_as_it_was_written() -> None:
    with pytest.raises(UsageError, match=r"between 0% and 100%; got '180%flops'"):
        hc.Budget.parse("180%flops")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, UsageError, "one number"),
        ({"heads": 3, "flops": 1e9}, UsageError, "one number"),
        ({"parameters": 0}, UsageError, "above 0"),
        ({"share": 0.5, "unit": "bytes"}, UnknownName, "parameters"),
        ({"heads": 5, "unit": "flops"}, UsageError, "goes with share"),
        ({"heads": "5"}, UsageError, "heads must be a number; got '5'. Budget.parse"),
        ({"share": "50%"}, UsageError, "share must be a number; got '50%'"),
        ({"heads": float("inf")}, UsageError, "whole number"),
    ],
)
def test_wrong_budgets(given: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        hc.Budget(**given)


def test_the_largest_number_within_a_limit() -> None:
    for limit in range(12):
        assert most_within(limit, float, range(11), what="heads") == min(limit, 10)
    with pytest.raises(UsageError, match="still costs 7"):
        most_within(5, lambda number: number + 7.0, range(11), what="flops")


def test_a_price_is_what_the_pruned_model_costs(llama: nn.Module) -> None:
    """Key/value heads go with their last query head: prices are of cut models, not sums over heads."""
    sites = hc.locate(llama)
    for off in (["decoder.0.0"], ["decoder.0.0", "decoder.0.1"], ["decoder.1.*"]):
        mask = sites.mask(off=off)
        small = hc.remove(llama, mask)
        assert Price(llama, "parameters")(mask) == sum(p.numel() for p in small.parameters())
        assert Price(llama, "flops", length=16)(mask) == hc.cost(small, length=16).flops
    assert Price(llama, "milliseconds", length=8)(sites.mask()) > 0


@pytest.mark.parametrize("architecture", ["gpt2", "t5", "albert"])
def test_tied_weights_are_counted_once(architecture: str) -> None:
    """A copy on the meta device had a new parameter for each use of a tied one: too many heads were removed."""
    model = zoo.build(architecture)
    sites, whole = hc.locate(model), sum(p.numel() for p in model.parameters())
    price = Price(model, "parameters")
    assert price(sites.mask()) == whole == hc.cost(model).parameters
    off = sites.mask(off=[sites.heads[0]])
    assert price(off) == sum(p.numel() for p in hc.remove(model, off).parameters())
    assert price.limit(hc.Budget.parse("95%params")) == pytest.approx(0.95 * whole)


@pytest.mark.parametrize("unit", ["parameters", "flops"])
def test_select_keeps_as_many_heads_as_the_budget_pays_for(bert: nn.Module, unit: Any) -> None:
    scores, price = hc.score("magnitude", bert), Price(bert, unit)
    budget = hc.Budget(share=0.9, unit=unit)
    mask = select(scores, budget, price=price)
    best = sorted(scores.heads, key=lambda head: -scores[head])
    count = len(mask.kept)
    assert set(mask.kept) == set(best[:count])
    sites, limit = hc.locate(bert), 0.9 * price(hc.locate(bert).mask())
    assert price(mask) <= limit < price(sites.mask(keep=best[: count + 1]))
    with pytest.raises(UsageError, match="still costs"):
        select(scores, hc.Budget(share=0.1, unit=unit), price=price)
    with pytest.raises(UsageError, match="needs price="):
        select(scores, budget)


@pytest.mark.parametrize("method", ["gradient", "fisher", "greedy"])
def test_every_method_takes_every_budget(bert: nn.Module, method: str) -> None:
    task = hc.task("classification", texts=sentences(10), labels=[i % 2 for i in range(10)], tokenizer=word_tokenizer())
    whole = sum(p.numel() for p in bert.parameters())
    options = {"candidates": 1} if method == "greedy" else {}
    result = hc.prune(bert, task, choose=method, keep=hc.Budget(share=0.95, unit="parameters"), **options)
    small = sum(p.numel() for p in result.model.parameters())
    head = 4 * 16 * 64 + 3 * 16
    assert 0.95 * whole - head < small <= 0.95 * whole


def test_a_budget_in_heads_is_safe_whichever_heads_go(llama: nn.Module) -> None:
    budget = hc.Budget(share=0.95, unit="parameters")
    heads = in_heads(llama, budget).heads
    sites = hc.locate(llama)
    price = Price(llama, "parameters")
    for seed in range(5):
        scores = hc.score("random", llama, seed=seed)
        assert price(select(scores, hc.Budget(heads=heads))) <= 0.95 * price(sites.mask())
