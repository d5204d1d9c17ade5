"""Greedy search: against an exhaustive slow version, and on planted truths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import headcount as hc
import zoo
from behaviour import hooks, identical, outputs
from headcount.errors import UsageError
from headcount.probes.projections import Projection, projected
from headcount.pruning.search import Search, unpredicted
from headcount.sites.running import evaluating
from headcount.surgery.ascent import Ascent
from headcount.surgery.compensate import compensate, spread
from headcount.surgery.compensations.compensation import columns, compensations
from tokens import sentences, word_tokenizer


@pytest.fixture
def task() -> Any:
    texts = sentences(15)
    return hc.task("classification", texts=texts, labels=[i % 2 for i in range(15)], tokenizer=word_tokenizer())


def loss(model: nn.Module, task: Any, projections: Any) -> float:
    with evaluating(model), projected(model, projections):
        every = torch.cat([task.nll(model, batch) for batch in task.batches()])
    return float(every.double().mean())


def exhaustive(model: nn.Module, task: Any, mask: hc.HeadGrid) -> dict[Any, float]:
    """Every head that is left taken away in turn: its site fitted again on rows seen by running everything."""
    now = compensate(model, mask, task, "lstsq").projections
    found = {}
    for head in mask.kept:
        less = compensate(model, mask.replace({head: 0}), task, "lstsq")  # below the head nothing differs
        found[head] = loss(model, task, {**now, head.site: less.projections[head.site]})
    return found


@pytest.mark.parametrize("architecture", ["bert"])
def test_it_takes_what_an_exhaustive_search_takes(architecture: str, task: Any) -> None:
    model = zoo.build(architecture)
    before = outputs(model)
    search, mask = Search(model, task, candidates=100), hc.locate(model).mask()
    for taken in search.steps([1] * 3):
        slow = exhaustive(model, task, mask)
        assert set(taken.losses) == set(slow)
        for head, value in slow.items():
            assert taken.losses[head] == pytest.approx(value, rel=1e-5)
        assert taken.heads == (min(slow, key=slow.__getitem__),)
        mask = mask.replace({taken.heads[0]: 0})
        assert search.mask == mask
    assert hooks(model) == 0
    assert identical(outputs(model), before)


def test_what_others_cannot_predict_is_what_a_regression_leaves(bert: nn.Module, task: Any) -> None:
    site = hc.locate(bert)["encoder.1"]
    with torch.no_grad(), Ascent(bert, task, keys=[site.key]) as ascent:
        calibration = ascent.calibrate(site, range(4), {}, intercept=True)
    moments = calibration.all
    covariance, _, _ = moments.about(*moments.means)
    covariance = covariance + 1e-3 * covariance.diagonal().mean() * torch.eye(len(covariance)).double()
    for place, share in enumerate(unpredicted(calibration, None)):
        own = columns([place], site.head_dim)
        rest = columns([other for other in range(4) if other != place], site.head_dim)
        mixed = covariance[own][:, rest]
        left = covariance[own][:, own] - mixed @ torch.linalg.solve(covariance[rest][:, rest], mixed.T)
        weight = Projection.of(site).weight_OK[:, own]
        expected = torch.trace(weight @ left @ weight.T) / torch.trace(weight @ covariance[own][:, own] @ weight.T)
        assert share == pytest.approx(float(expected), rel=1e-6)
        assert 0 <= share <= 1


def test_a_planted_copy_goes_first(bert: nn.Module, task: Any) -> None:
    """Head 2 of layer 1 repeats head 0: either can be made up for, and no other head. The loss is the distance to the
    full model, so that nothing can be won."""
    site = hc.locate(bert)["encoder.1"]
    attention: Any = site.module
    with torch.no_grad():
        for projection in (attention.query, attention.key, attention.value):
            for values in (projection.weight, projection.bias):
                values[2 * site.head_dim : 3 * site.head_dim] = values[: site.head_dim]
    batches = [{name: value for name, value in batch.items() if name != "labels"} for batch in task.batches()]
    with torch.no_grad():
        full = [bert(**batch).logits for batch in batches]

    def distance(model: nn.Module, batch: Any) -> Tensor:
        place = next(place for place, other in enumerate(batches) if other is batch)
        return (model(**batch).logits - full[place]).square().sum(-1)

    far = hc.task.of(batches, nll=distance)
    result = hc.prune(bert, far, choose="greedy", keep=hc.Budget(heads=11), candidates=12)
    (gone,) = result.record.parts.removed_heads
    assert gone in ("encoder.1.0", "encoder.1.2")
    change = result.record.parts.compensation.sites["encoder.1"]
    assert change.explained > 0.999 > change.explained_without


def test_groups_layers_and_kinds(marian: nn.Module) -> None:
    ids = torch.randint(3, 90, (6, 5), generator=torch.Generator().manual_seed(0))

    def nll(model: nn.Module, batch: Any) -> Tensor:
        logits = model(input_ids=batch["ids"], decoder_input_ids=batch["ids"]).logits
        return nn.functional.cross_entropy(logits.transpose(1, 2), batch["ids"], reduction="none").sum(-1)

    task = hc.task.of([{"ids": ids}], nll=nll)
    asked = {"kinds": ("cross",), "group": 2, "at_least": 1, "candidates": 4}
    result = hc.prune(marian, task, choose="greedy", keep=hc.Budget(heads=5), **asked)
    sites = hc.locate(result.model)
    assert sum(site.num_heads for site in sites if site.kind == "cross") == 5
    assert all(site.num_heads >= 1 for site in sites)
    assert [len(step.removed_heads) for step in result.record.parts.choice_details.search] == [2, 2, 2, 1]
    with pytest.raises(UsageError, match=r"Cannot keep 1 of 12 heads in 3 layers with at least 1 .* number is 3"):
        hc.prune(marian, task, choose="greedy", keep=hc.Budget(heads=1), kinds=("cross",), at_least=1, group=4)
    with pytest.raises(UsageError, match="1 or more; got 0"):
        hc.prune(marian, task, choose="greedy", keep=hc.Budget(heads=5), candidates=0)


@pytest.mark.parametrize("how", ["none", "bias", "scale"])
def test_every_compensation_can_be_in_the_loop(bert: nn.Module, task: Any, how: str) -> None:
    result = hc.prune(bert, task, choose="greedy", keep=hc.Budget(heads=9), compensate=how, candidates=2)
    assert len(hc.locate(result.model).heads) == 9


def test_what_is_fitted_without_a_head_is_a_fit_to_the_others(bert: nn.Module, task: Any) -> None:
    """Moments with a head left out are the moments of the others."""
    site = hc.locate(bert)["encoder.0"]
    with torch.no_grad(), Ascent(bert, task, keys=[site.key]) as ascent:
        whole = ascent.calibrate(site, range(4), {}, intercept=True)
        less = ascent.calibrate(site, [0, 1, 3], {}, intercept=True)
    one, other = (compensations["lstsq"](each) for each in (whole.without(2), less))
    torch.testing.assert_close(spread(whole.without(2), one).weight_OK, spread(less, other).weight_OK)
