"""Pruning by rank: the order is the score's, every step is measured, the result is what the mask says."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

import headcount as hc
import zoo
from behaviour import hooks
from headcount.errors import UnknownName, UsageError, VerificationError
from headcount.metrics import ACCURACY, LOSS, MATTHEWS, PERPLEXITY, TOKEN_ACCURACY, Metric, class_counts
from headcount.pruning.ranking import Order, Restrictions, counts_to, curve, kept, ranked_masks, untied
from headcount.selection.shape import Shape
from headcount.surgery.price import Price
from headcount.tasks.quality import Quality
from tokens import sentences, word_tokenizer


@pytest.fixture
def task() -> Any:
    return hc.task("classification", texts=sentences(24), labels=[i % 2 for i in range(24)], tokenizer=word_tokenizer())


def test_heads_go_in_the_order_of_their_scores(bert: nn.Module, task: Any) -> None:
    scores = hc.score("gradient", bert, task)
    worst = sorted(scores.heads, key=lambda head: scores[head])
    for step in curve(bert, task, Order("gradient"), [0, 3, 7]):
        assert {head for head in step.mask.heads if not step.mask[head]} == set(worst[: step.removed])
        with hc.masked(bert, step.mask):
            assert step.quality.value == task.quality(bert).value


def test_scores_are_taken_again_on_what_is_left(bert: nn.Module, task: Any) -> None:
    first, second = list(curve(bert, task, Order("gradient", recompute=True), [2, 5]))
    with hc.masked(bert, first.mask):
        scores = hc.score("gradient", bert, task)
    left = sorted(first.mask.kept, key=lambda head: scores[head])
    gone = {head for head in second.mask.heads if not second.mask[head]}
    assert gone == {head for head in first.mask.heads if not first.mask[head]} | set(left[:3])


def test_equal_heads_go_in_an_order_of_the_model_and_not_of_where_they_are(bert: nn.Module) -> None:
    """Single ablations of accuracy are mostly 0: the last layers went first, whatever they were worth."""
    heads = hc.locate(bert).heads
    scores = hc.HeadGrid([(head, [0.0, -1.0, 2.0][number % 3]) for number, head in enumerate(heads)])
    order = untied(scores, bert)
    assert len({*order.numbers()}) == len(heads)
    assert all(order[low] < order[high] for low in heads for high in heads if scores[low] < scores[high])
    np.testing.assert_allclose(order.numbers(), scores.numbers(), atol=1e-8)
    assert order == untied(scores, bert), "the same model has the same order"
    ascending = [[head for head in sorted(heads, key=lambda head: order[head]) if scores[head] == 0]]
    with torch.no_grad():
        next(bert.parameters()).add_(1)
    order = untied(scores, bert)
    ascending.append([head for head in sorted(heads, key=lambda head: order[head]) if scores[head] == 0])
    assert ascending[0] != ascending[1], "models are independent draws"
    different = hc.HeadGrid([(head, float(number)) for number, head in enumerate(heads)])
    assert untied(different, bert) is different


@pytest.mark.parametrize("values", [[5e-324, 0.0], [-np.inf, 1.0], [1e300, -1e300], [1.0, 1.0 + 2**-52]])
def test_equal_heads_never_pass_others(bert: nn.Module, values: list[float]) -> None:
    heads = hc.locate(bert).heads
    scores = hc.HeadGrid([(head, values[number % 2]) for number, head in enumerate(heads)])
    order = untied(scores, bert)
    assert all(order[low] <= order[high] for low in heads for high in heads if scores[low] < scores[high])


def test_steps_say_how_many_heads_chance_chose(bert: nn.Module, task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    heads = hc.locate(bert).heads
    scores = hc.HeadGrid([(head, float(number >= 4)) for number, head in enumerate(heads)])
    monkeypatch.setattr(Order, "scores", lambda *_: scores)
    steps = list(curve(bert, task, Order("ablation"), [0, 3, 4, 6]))
    assert [step.tied for step in steps] == [0, 3, 0, 2]
    assert steps[1].to_result(("encoder",)).tied == 3


@pytest.mark.parametrize("scale", [1e-14, 1.0, 1e14])
@pytest.mark.parametrize("options", [{}, {"multiple": 2}])
def test_heads_that_are_gone_stay_behind_whatever_the_unit_of_the_scores(
    bert: nn.Module, task: Any, monkeypatch: pytest.MonkeyPatch, scale: float, options: dict[str, int]
) -> None:
    """A new score of a removed head, however high, does not bring it back; one of equal scores neither."""
    heads = hc.locate(bert).heads
    first = hc.HeadGrid([(head, scale * (1 + number)) for number, head in enumerate(heads)])
    for later in (first.map(lambda value: 13 * scale - value), first.map(lambda _: scale), first.map(lambda _: 0.0)):
        measured = iter([first, later])
        monkeypatch.setattr(Order, "scores", lambda *_, measured=measured: next(measured))
        masks = ranked_masks(bert, task, Order(recompute=True), [4, 6], Restrictions(shape=Shape(**options)))
        before, after = list(masks)
        assert set(after.kept) < set(before.kept)


def test_a_result_that_verification_refuses_is_in_the_error(
    bert: nn.Module, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.surgery.verify.Expectation.compare", lambda *_: ({}, {"logits": "logits: far."}))
    with pytest.raises(VerificationError, match=r"logits: far\..*`model`.*verify=False") as caught:
        hc.prune(bert, task, choose="gradient", keep=hc.Budget(share=0.5), step=1.0)
    result = caught.value.result
    assert caught.value.model is result.model
    assert len(hc.locate(result.model).heads) == len(result.mask.kept) == 6
    assert result.record.parts.curve[-1].removed == 6
    assert result.record.parts.verified is False
    assert (
        hc.prune(bert, task, choose="gradient", keep=hc.Budget(share=0.5), step=1.0, verify=False).mask == result.mask
    )


def test_the_result_is_the_masked_model(task: Any) -> None:
    model = zoo.build("bert")
    total = len(hc.locate(model).heads)
    result = hc.prune(model, task, choose="gradient", keep=hc.Budget(share=0.5))
    assert len(hc.locate(result.model).heads) == len(result.mask.kept) == total // 2
    assert len(hc.locate(model).heads) == total, "the original stays"
    assert hooks(model) == 0
    batch = next(task.batches())
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    with hc.masked(model, result.mask), torch.no_grad():
        expected = model(**inputs).logits
    with torch.no_grad():
        torch.testing.assert_close(result.model(**inputs).logits, expected, rtol=0, atol=1e-5)
    points = result.record.parts.curve
    assert result.record.parts.verified
    assert points[0].removed == 0
    assert points[-1].removed == total // 2
    assert all(point.low <= point.value <= point.high for point in points)


@pytest.mark.parametrize("order", ["gradient", "ablation", "magnitude", "random"])
def test_every_score_is_an_order(bert: nn.Module, task: Any, order: str) -> None:
    result = hc.prune(bert, task, choose=order, keep=hc.Budget(heads=4), step=0.5)
    assert len(result.mask.kept) == 4


def test_by_kind(marian: nn.Module) -> None:
    ids = torch.randint(3, 90, (4, 5), generator=torch.Generator().manual_seed(0))

    def nll(model: nn.Module, batch: Any) -> torch.Tensor:
        logits = model(input_ids=batch["ids"], decoder_input_ids=batch["ids"]).logits
        return nn.functional.cross_entropy(logits.transpose(1, 2), batch["ids"], reduction="none").sum(-1)

    task = hc.task.of([{"ids": ids}], nll=nll)
    result = hc.prune(marian, task, choose="gradient", keep=hc.Budget(heads=2), kinds=("cross",))
    kept = result.record.parts.curve[-1].kept_by_kind
    assert kept["cross"] == 2
    assert kept["encoder"] == kept["decoder"] == 12


def test_uniform_keeps_as_many_in_every_layer(bert: nn.Module, task: Any) -> None:
    layers = len(hc.locate(bert))
    result = hc.prune(bert, task, choose="gradient", keep=hc.Budget(heads=2 * layers), rule="uniform")
    assert [site.num_heads for site in hc.locate(result.model)] == [2] * layers


def test_a_planted_dead_head_goes_first(bert: nn.Module, task: Any) -> None:
    site = hc.locate(bert)["encoder.1"]
    with torch.no_grad():
        site.output.weight[:, site.head_dim : 2 * site.head_dim] = 0
    (step,) = curve(bert, task, Order("gradient"), [1])
    assert [str(head) for head in step.mask.heads if not step.mask[head]] == ["encoder.1.1"]


def losses(metric: Metric, count: int, random: np.random.Generator) -> tuple[Quality, Quality]:
    """The losses of texts of a pruned and of the whole model; pruning adds one third on average."""
    tokens = random.integers(10, 40, count).astype(float)
    whole, more = random.normal(3.0, 0.5, count), np.abs(random.normal(1.0, 0.5, count))
    pruned, before = (np.stack([tokens * nats, tokens], 1) for nats in (whole + more, whole))
    return Quality.of(metric, pruned), Quality.of(metric, before)


@pytest.mark.parametrize("metric", [PERPLEXITY, LOSS], ids=lambda metric: metric.name)
def test_the_share_of_a_loss_that_remains_is_positive_and_has_no_upper_end_if_the_loss_may_be_none(
    metric: Metric,
) -> None:
    random, limitless = np.random.default_rng(0), 0
    for _ in range(60):
        pruned, whole = losses(metric, 8, random)
        share, change = kept(pruned, whole), pruned.against(whole)
        assert 0 <= share.low <= share.value
        if whole.value + change.low <= 0:
            limitless += 1
            assert np.isnan(share.high)
        else:
            assert share.high >= whole.value / (whole.value + change.low) - 1e-9
    assert bool(limitless) == (metric is PERPLEXITY)


@pytest.mark.parametrize("metric", [PERPLEXITY, LOSS], ids=lambda metric: metric.name)
def test_the_share_of_a_loss_that_remains_is_within_its_interval(metric: Metric) -> None:
    """At most 5% leave it out, or 20 of 200 by chance."""
    random = np.random.default_rng(1)
    pruned, whole = losses(metric, 200_000, random)
    truth, outside = whole.value / pruned.value, 0
    for _ in range(200):
        share = kept(*losses(metric, 20, random))
        outside += truth < share.low or truth > share.high  # NaN: no upper end
    assert outside <= 20


@pytest.mark.parametrize("metric", [ACCURACY, TOKEN_ACCURACY], ids=lambda metric: metric.name)
def test_of_a_score_that_is_lost_altogether_nothing_remains(metric: Metric) -> None:
    right, wrong = np.ones((40, 2)), np.stack([np.zeros(40), np.ones(40)], 1)
    share = kept(Quality.of(metric, wrong), Quality.of(metric, right))
    assert share.low == share.value == 0
    assert share.high < 0.2


def test_of_a_score_below_0_no_share_remains() -> None:
    """From -.49 to -.53, Matthews kept "108%"."""
    labels = np.arange(60) % 2
    whole, pruned = (
        Quality.of(MATTHEWS, class_counts(labels ^ (np.arange(60) % every > 0), labels, 2)) for every in (4, 6)
    )
    assert pruned.value < whole.value < 0
    assert np.isnan(kept(pruned, whole)).all()


def test_steps_reach_the_budget_exactly() -> None:
    assert counts_to(20, 10, 0.1) == [0, 2, 4, 6, 8, 10]
    assert counts_to(20, 9, 0.25) == [0, 5, 9]
    assert counts_to(12, 12, 1.0) == [0, 12]
    assert counts_to(12, 0, 0.1) == [0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"kinds": ("cross",)}, UsageError, "no cross heads"),
        ({"step": 0.0}, UsageError, "above 0"),
        ({"choose": "gradiant"}, UnknownName, "Did you mean 'gradient'"),
        ({"rule": "uniform", "keep": hc.Budget(heads=5)}, UsageError, "the same number in every layer"),
        ({"keep": hc.Budget(heads=500)}, UsageError, "only"),
    ],
)
def test_wrong_input(bert: nn.Module, task: Any, change: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        hc.prune(bert, task, **{"keep": hc.Budget(heads=4), **change})
    with pytest.raises(UsageError, match="between 0 and 1"):
        hc.Budget(share=1.01)
    assert np.all([len(module._forward_pre_hooks) == 0 for module in bert.modules()])


def test_groups_go_whole_and_leave_a_stock_checkpoint(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=4, tie_word_embeddings=False,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    groups = hc.locate(model).groups
    assert [len(group) for group in groups] == [2] * 8
    task = hc.task("language-modelling", texts=sentences(8), tokenizer=word_tokenizer())
    done = hc.prune(model, task, choose="gradient", keep=hc.Budget(share=0.5), unit="group", rule="uniform")
    for group in groups:
        assert len({done.mask[head] for head in group}) == 1
    hc.save(done.model, tmp_path / "half")
    loaded = LlamaForCausalLM.from_pretrained(tmp_path / "half")  # stock code
    assert loaded.config.num_key_value_heads == 2
    ids = torch.arange(3, 11)[None]
    torch.testing.assert_close(loaded(ids).logits, done.model(ids).logits)
    steps = hc.prune(model, task, keep=hc.Budget(heads=6), unit="group", step=0.1).record.parts.curve
    assert all(point.removed % 2 == 0 for point in steps)
    with pytest.raises(UsageError, match="group"):
        hc.prune(model, task, choose="gradient", keep=hc.Budget(heads=6), unit="layer")


def test_a_budget_of_milliseconds_that_a_shape_cannot_meet_is_warned_of(
    bert: nn.Module, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model was saved without a word, and its record said the budget."""

    def milliseconds(_: Price, small: nn.Module) -> float:
        return 1.0 + len(hc.locate(small).heads)

    monkeypatch.setattr(Price, "_milliseconds", milliseconds)
    least = len(hc.locate(bert).heads) // 2
    each = hc.locate(bert)[0].num_heads // 2
    with pytest.warns(UserWarning, match=rf"takes {1 + least} milliseconds; the budget 40%ms allows"):
        result = hc.prune(bert, task, choose="gradient", keep="40%ms", at_least=each)
    assert len(result.mask.kept) == least
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hc.prune(bert, task, choose="gradient", keep="70%ms", at_least=each)
