"""Planted truths for the newer estimators: what each sees, and what it is known not to see."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import headcount as hc
from games import game, one_layer
from headcount.errors import UnknownName, UsageError
from headcount.record import Signature
from headcount.scores.one_pass import mean_scores, moments
from headcount.statistics import mean_interval


def linear(on: Tensor) -> Tensor:
    return 4 - 2 * on[:, 0] - on[:, 1] + 0.5 * on[:, 2]


def saturated(on: Tensor) -> Tensor:
    """The answer is as sure as can be with the head on; half of it would do."""
    return (1 - 2 * on[:, 0]).relu() - 0.1 * on[:, 1]


def substitutes(on: Tensor) -> Tensor:
    return 1 - torch.maximum(on[:, 0], on[:, 1]) - 0.3 * on[:, 2]


def numbers(name: str, loss: object, **options: object) -> list[float]:
    model = one_layer()
    found = hc.score(name, model, game(model, loss), **options)  # type: ignore[arg-type]
    return [round(float(value), 6) for value in found.numbers()]


@pytest.mark.parametrize("name", ["integrated-gradients", "attribution-patching", "shapley", "ablation"])
def test_all_agree_where_heads_add_up(name: str) -> None:
    options = {"permutations": 2, "tolerance": 0.0} if name == "shapley" else {}
    assert numbers(name, linear, **options) == pytest.approx([2, 1, -0.5, 0], abs=1e-5)


def test_a_saturated_loss_is_seen_by_integrals_and_not_by_slopes() -> None:
    """The known failure of attribution patching, and of the gradient score."""
    assert numbers("ablation", saturated)[0] == pytest.approx(1)
    assert numbers("integrated-gradients", saturated, steps=40)[0] == pytest.approx(1)
    assert numbers("attribution-patching", saturated)[:2] == pytest.approx([0, 0.1])


def test_substitutes_share_their_worth_in_shapley_values_only() -> None:
    assert numbers("ablation", substitutes) == pytest.approx([0, 0, 0.3, 0])
    found = numbers("shapley", substitutes, permutations=150)
    assert found[:2] == pytest.approx([0.5, 0.5], abs=0.1)
    assert found[2:] == pytest.approx([0.3, 0], abs=1e-5)


def test_an_order_is_cut_short_where_nothing_is_left_to_lose() -> None:
    """Only head 0 matters: after it is gone no run is needed, and nothing is lost by that."""
    model, runs = one_layer(), []

    def first(on: Tensor) -> Tensor:
        runs.append(1)
        return 1 - on[:, 0]

    short = hc.score("shapley", model, game(model, first), permutations=40)
    cut, runs[:] = len(runs), []
    whole = hc.score("shapley", model, game(model, first), permutations=40, tolerance=0.0)
    assert cut < 0.8 * len(runs)
    np.testing.assert_allclose(short.numbers(), whole.numbers(), atol=1e-9)


def test_wrong_options_are_refused() -> None:
    model = one_layer()
    task = game(model, linear)
    for name in ("integrated-gradients", "attribution-patching", "shapley"):
        with pytest.raises(UsageError, match="needs a task"):
            hc.score(name, model)
    with pytest.raises(UsageError, match="steps must be at least 1"):
        hc.score("integrated-gradients", model, task, steps=0)
    with pytest.raises(UnknownName, match="replacement"):
        hc.score("attribution-patching", model, task, replace="median")
    with pytest.raises(UsageError, match="permutations must be at least 2"):
        hc.score("shapley", model, task, permutations=1)


def contrastive(model: nn.Module, batch: Any) -> Tensor:
    """Each example's loss depends on the others of its batch: they are its wrong answers."""
    texts, others = (model(batch["input_ids"].roll(places, 1)).logits for places in (0, 1))
    return nn.functional.cross_entropy(20 * texts @ others.T, torch.arange(len(texts)), reduction="none")


def best_of_two(model: nn.Module, batch: Any) -> Tensor:
    """Two rows of the model for each example, as in multiple choice."""
    logits = model(batch["input_ids"].flatten(0, 1)).logits[:, 0].reshape(-1, 2)
    return nn.functional.cross_entropy(logits, batch["labels"], reduction="none")


def falls(model: nn.Module, nll: Any, batch: Any, mask_H: Tensor) -> np.ndarray:
    """[B, H]: minus the gradient of each example's loss at a mask of all rows, one example at a time."""
    mask_H = mask_H.clone().requires_grad_()
    with hc.masked(model, mask_H):
        losses = nll(model, batch)
    return -torch.stack([torch.autograd.grad(loss, mask_H, retain_graph=True)[0] for loss in losses]).double().numpy()


@pytest.mark.parametrize("nll", [contrastive, best_of_two])
def test_slopes_of_examples_that_depend_on_several_rows(bert: nn.Module, nll: Any) -> None:
    """Means and intervals, by a loop over examples: the gradient at a row is not that of the row's example."""
    ids = torch.randint(3, 90, (8, 2, 5) if nll is best_of_two else (8, 5), generator=torch.Generator().manual_seed(0))
    labels = torch.arange(8) % 2
    batches = [{"input_ids": ids[rows], "labels": labels[rows]} for rows in (slice(0, 4), slice(4, 8))]
    task, ones_H, steps = hc.task.of(batches, nll=nll), torch.ones(12), 2
    patched_NH = np.concatenate([falls(bert, nll, batch, ones_H) for batch in batches])
    integrated_NH = np.zeros_like(patched_NH)
    for layer, step in itertools.product(range(3), range(steps)):
        columns = slice(4 * layer, 4 * layer + 4)
        mask_H = ones_H.clone()
        mask_H[columns] = (step + 0.5) / steps
        slopes_NH = np.concatenate([falls(bert, nll, batch, mask_H) for batch in batches])
        integrated_NH[:, columns] += slopes_NH[:, columns] / steps
    for name, options, expected_NH in (
        ("attribution-patching", {}, patched_NH),
        ("integrated-gradients", {"steps": steps}, integrated_NH),
    ):
        found = hc.score(name, bert, task, **options)
        expected = mean_scores(bert, moments(expected_NH, 8, hc.locate(bert)), Signature(), normalize=False)
        for grid, right in ((found, expected), (found.low, expected.low), (found.high, expected.high)):
            assert grid is not None
            assert right is not None
            np.testing.assert_allclose(grid.numbers(), right.numbers(), rtol=1e-3, atol=1e-6, err_msg=name)


def test_shapley_values_vary_over_examples_however_many_orders_there_are() -> None:
    """What a head adds depends on the example alone here: orders do not vary, and the data are six examples."""
    model, worth_B = one_layer(), torch.linspace(-3, 1, 6, dtype=torch.float64)
    found = hc.score("shapley", model, game(model, lambda on_BH: worth_B * on_BH[:, 0]), permutations=40)
    assert found.low is not None
    assert found.high is not None
    ends = [float(grid["encoder.0.0"]) for grid in (found, found.low, found.high)]
    assert ends == pytest.approx([*mean_interval(-worth_B.numpy())])


def test_shapley_values_of_batches_of_one_example_vary_over_examples_too() -> None:
    model = one_layer()
    task = game(model, lambda on_BH: on_BH[:, 0] * (2 * torch.rand(1, dtype=torch.float64) - 3), rows=1, batches=8)
    found = hc.score("shapley", model, task, permutations=100)
    assert found.low is not None
    assert found.high is not None
    width = float(found.high["encoder.0.0"] - found.low["encoder.0.0"])
    assert width > 0.5  # of 100 orders alone: 0.23
