"""Integrated gradients, attribution patching and Shapley values against their definitions, in loops."""

from __future__ import annotations

from itertools import combinations, permutations
from math import factorial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headcount as hc
import zoo
from games import game, one_layer
from headcount.probes.means import mean_outputs
from headcount.scores.shapley import marginal
from headcount.sites.inputs import example_batch

STEP = 1e-5


@pytest.fixture(scope="module")
def model() -> nn.Module:
    return zoo.build("marian", dtype=torch.float64)


def smooth(model: nn.Module, batches: int = 2) -> Any:
    examples = [example_batch(model, seed=seed) for seed in range(batches)]

    def nll(live: nn.Module, batch: Any) -> torch.Tensor:
        output = next(value for value in live(**batch).values() if isinstance(value, torch.Tensor))
        return output.flatten(1).tanh().pow(2).sum(-1)

    return hc.task.of(examples, nll=nll)


def loss(model: nn.Module, task: Any, mask: Any, **options: Any) -> float:
    """Mean over examples."""
    with torch.no_grad(), hc.masked(model, mask, **options):
        return float(torch.cat([task.nll(model, batch) for batch in task.batches()]).mean())


def slope(model: nn.Module, task: Any, mask: np.ndarray, place: int, **options: Any) -> float:
    sides = []
    for sign in (1, -1):
        moved = mask.copy()
        moved[place] += sign * STEP
        sides.append(loss(model, task, moved, **options))
    return (sides[0] - sides[1]) / (2 * STEP)


def test_integrated_gradients(model: nn.Module) -> None:
    task, sites = smooth(model), hc.locate(model)
    found = hc.score("integrated-gradients", model, task, steps=4)
    for name in ("encoder.1.2", "decoder.0.0", "cross.2.3"):
        place = sites.heads.index(hc.Head.parse(name))
        layer = [head.site == sites.heads[place].site for head in sites.heads]
        slopes = [slope(model, task, np.where(layer, share, 1.0), place) for share in (0.125, 0.375, 0.625, 0.875)]
        assert found[name] == pytest.approx(-np.mean(slopes), rel=1e-4, abs=1e-7)


def test_integrated_gradients_are_complete(model: nn.Module) -> None:
    """Over the heads of a layer they sum to what is lost without the layer."""
    task, sites = smooth(model, batches=1), hc.locate(model)
    found = hc.score("integrated-gradients", model, task, steps=12)
    for site in ("encoder.0", "cross.1"):
        lost = loss(model, task, sites.mask(off=f"{site}.*")) - loss(model, task, sites.mask())
        assert found.layer(*sites[site].key).sum() == pytest.approx(lost, rel=2e-2)


@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_attribution_patching(model: nn.Module, replace: str) -> None:
    """The slope of the loss on the straight way from the head's output to its replacement."""
    task, sites = smooth(model), hc.locate(model)
    found = hc.score("attribution-patching", model, task, replace=replace)
    options = {"replace": mean_outputs(model, task.batches())} if replace == "mean" else {}
    for name in ("encoder.1.2", "decoder.0.0", "cross.2.3"):
        place = sites.heads.index(hc.Head.parse(name))
        expected = -slope(model, task, np.ones(len(sites.heads)), place, **options)
        assert found[name] == pytest.approx(expected, rel=1e-4, abs=1e-7)


def worth(on: torch.Tensor) -> torch.Tensor:
    """A game with substitutes, a helper and an idle head."""
    return 3 - 2 * torch.maximum(on[:, 0], on[:, 1]) - on[:, 2] * (0.5 + on[:, 0])


def exact_shapley(model: nn.Module, task: Any) -> list[float]:
    """Over all coalitions, each weighed by the number of orders in which it comes first."""
    heads = hc.locate(model).heads
    value = {
        frozenset(kept): -loss(model, task, np.array([float(place in kept) for place in range(4)]))
        for size in range(5)
        for kept in combinations(range(4), size)
    }
    return [
        sum(
            factorial(len(kept)) * factorial(3 - len(kept)) / factorial(4) * (value[kept | {place}] - value[kept])
            for kept in value
            if place not in kept
        )
        for place in range(len(heads))
    ]


def test_shapley_values_of_all_orders_are_those_of_all_coalitions() -> None:
    model = one_layer()
    task = game(model, worth)
    (batch,) = task.batches()
    with torch.no_grad():
        orders = [marginal(model, task, batch, np.array(order), 0.0) for order in permutations(range(4))]
    np.testing.assert_allclose(np.mean(orders, axis=(0, 1)), exact_shapley(model, task), atol=1e-9)


def test_shapley_values_by_sampling_are_near_with_their_interval() -> None:
    model = one_layer()
    task = game(model, worth, rows=3, batches=2)
    exact = exact_shapley(model, task)
    found = hc.score("shapley", model, task, permutations=200, tolerance=0.0)
    assert found.low is not None
    assert found.high is not None
    widths = found.high.numbers() - found.low.numbers()
    assert np.all(np.abs(found.numbers() - exact) <= widths)  # twice the half of a 95% interval
    assert 0 < widths[0] < 0.5
    total = loss(model, task, np.zeros(4)) - loss(model, task, np.ones(4))
    assert found.numbers().sum() == pytest.approx(total), "what all heads are worth is shared out"
