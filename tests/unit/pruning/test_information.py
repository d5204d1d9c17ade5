"""Fisher search and rearrangement: against brute force, and on planted truths."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headcount as hc
import zoo
from headcount.errors import UnknownName, UsageError
from headcount.pruning.information import _swapped, information, rearrange, rearranged, search
from headcount.selection.select import select
from headcount.sites.running import evaluating
from tokens import sentences, word_tokenizer


@pytest.fixture
def task() -> Any:
    texts = sentences(12)
    return hc.task(
        "classification", texts=texts, labels=[i % 2 for i in range(12)], tokenizer=word_tokenizer(), batch_size=5
    )


def gradients(model: nn.Module, task: Any) -> np.ndarray:
    """[N, H], each example run alone under its own mask."""
    found = []
    for batch in task.batches():
        for row in range(len(batch["labels"])):
            one = {name: value[row : row + 1] for name, value in batch.items()}
            mask = torch.ones(len(hc.locate(model).heads), requires_grad=True)
            with evaluating(model, gradients=True), hc.masked(model, mask):
                task.nll(model, one)[0].backward()
            found.append(mask.grad.double().numpy())
    return np.array(found)


def test_information_is_the_sum_of_outer_products(bert: nn.Module, task: Any) -> None:
    slopes_NH = gradients(bert, task)
    scale = np.abs(slopes_NH.T @ slopes_NH).max()
    np.testing.assert_allclose(information(bert, task), slopes_NH.T @ slopes_NH, rtol=0, atol=1e-4 * scale)
    by_batch = np.stack([slopes_NH[start : start + 5].sum(0) for start in range(0, 12, 5)])
    found = information(bert, task, granularity="batch")
    np.testing.assert_allclose(found, by_batch.T @ by_batch, rtol=0, atol=1e-4 * np.abs(found).max())
    np.testing.assert_allclose(
        np.diagonal(information(bert, task)), hc.score("fisher", bert, task).numbers(), rtol=1e-6
    )


def test_search_and_rearrangement_are_what_brute_force_finds(bert: nn.Module, task: Any) -> None:
    found_HH, sites = information(bert, task), hc.locate(bert)
    for keep in (9, 6, 3):
        mask = rearrange(bert, found_HH, search(bert, found_HH, hc.Budget(heads=keep)))
        diagonal = np.diagonal(found_HH)
        least = set(np.argsort(diagonal, kind="stable")[: len(sites.heads) - keep].tolist())
        place = 0
        for site in sites:
            numbers = range(place, place + site.num_heads)
            count = len(least & set(numbers))
            best = min(
                combinations(numbers, count),
                key=lambda some: sum(found_HH[one, other] for one in some for other in some),
            )
            gone = {number for number in numbers if not mask[sites.heads[number]]}
            assert gone == set(best)
            place += site.num_heads


def test_swaps_never_end_above_where_they_began() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        vectors = random.normal(size=(3, 8))
        block, gone = vectors.T @ vectors, [0, 1, 2, 3]
        exact, swapped = rearranged(block, gone), _swapped(block, gone)
        cost = {
            name: block[np.ix_(some, some)].sum()
            for name, some in (("exact", exact), ("swapped", swapped), ("first", gone))
        }
        assert cost["exact"] <= cost["swapped"] + 1e-9 <= cost["first"] + 2e-9
        assert len(exact) == len(swapped) == 4


def test_heads_that_cancel_go_together() -> None:
    """Heads 0 and 1 matter most alone and nothing together: the diagonal would take 2 and 3."""
    gradient_NP = np.array([[5.0, -5.0, 1.0, 1.0], [3.0, -3.0, 1.0, 1.0]])
    assert rearranged(gradient_NP.T @ gradient_NP, [2, 3]) == [0, 1]


def test_the_method_ends_in_a_smaller_model(bert: nn.Module, task: Any) -> None:
    result = hc.prune(bert, task, choose="fisher", keep=hc.Budget(heads=6), compensate="scale")
    assert len(hc.locate(result.model).heads) == 6
    parts = result.record.parts
    assert parts.method == "fisher"
    assert parts.curve[-1].removed == 6
    assert parts.compensation.method == "scale"
    assert set(parts.compensation.sites) <= {"encoder.0", "encoder.1", "encoder.2"}
    with pytest.raises(UnknownName, match="granularity"):
        hc.prune(bert, task, choose="fisher", keep=hc.Budget(heads=6), granularity="token")


def test_a_distance_whose_gradients_are_zero_is_refused() -> None:
    model = zoo.build("xlm-roberta")
    embedding = hc.task("embedding", texts=sentences(7), tokenizer=word_tokenizer(), model=model)
    with pytest.raises(UsageError, match="fisher score is not defined for the task embedding"):
        hc.prune(model, embedding, choose="fisher", keep=hc.Budget(heads=6))


def test_heads_are_searched_once(bert: nn.Module, task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two searches for a budget of milliseconds would time the models anew, and find two numbers of heads."""
    searches: list[Any] = []

    def counted(*given: Any, **options: Any) -> Any:
        searches.append(select(*given, **options))
        return searches[-1]

    monkeypatch.setattr("headcount.pruning.information.select", counted)
    result = hc.prune(bert, task, choose="fisher", keep="6")
    (searched,) = searches
    moved = [str(head) for head in searched.heads if searched[head] != result.mask[head]]
    assert list(result.record.parts.choice_details.rearranged or ()) == moved
