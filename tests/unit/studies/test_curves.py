"""Pruning curves, dynamics and speed: their records keep their word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

import headcount as hc
import laboratory
from forks import shared_by
from headcount.checkpoints.chosen_on import write_chosen_on
from headcount.errors import UsageError
from headcount.metrics import ACCURACY, LOSS
from headcount.pruning.ranking import kept
from headcount.record import Record
from headcount.record.codec import encode
from headcount.record.results.curves import Curves
from headcount.studies.curves import CurvePlan, gain_over, lead, pruning_curves
from headcount.studies.dynamics import dynamics, epochs_of
from headcount.studies.speed import Bench, speed
from headcount.tasks.overlap import Examples
from headcount.tasks.quality import Quality
from tokens import sentences, word_tokenizer

SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}


def classifier(seed: int = 0) -> BertForSequenceClassification:
    torch.manual_seed(seed)
    return BertForSequenceClassification(BertConfig(vocab_size=99, **SIZE)).eval()


def one_head_does_it() -> BertForSequenceClassification:
    model = classifier()
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.output.dense.weight.mul_(0.001)
        model.bert.encoder.layer[1].attention.output.dense.weight[:, 4:8].normal_(0, 3)
    return model


def labelled(model: Any) -> Any:
    """Texts that the model labels rightly, by definition."""
    texts = sentences(60)
    with torch.no_grad():
        labels = model(**word_tokenizer()(texts, padding=True, return_tensors="pt")).logits.argmax(-1).tolist()
    return hc.task("classification", texts=texts, labels=labels, tokenizer=word_tokenizer())


@pytest.mark.parametrize("recompute", [False, True])
def test_processes_resume_curves_together(tmp_path: Path, recompute: bool) -> None:
    """Where one had finished more than the other, they gathered scores of different orders, and failed with a KeyError.

    recompute: then the scores of a finished curve are not kept.
    """

    def work() -> dict[str, Any]:
        model, orders = one_head_does_it(), ("gradient", "ablation")
        plan = CurvePlan(orders=orders, random=1, step=0.5, recompute=recompute)
        return encode(pruning_curves(model, labelled(model), plan=plan, folder=tmp_path).parts)

    whole, _ = shared_by(2, work)
    for file in (tmp_path / "finished" / "1-of-2").glob("*gradient*.safetensors"):
        file.unlink()  # killed before the second process wrote them
    for file in (tmp_path / "finished").glob("*/*ablation*.safetensors"):
        file.unlink()
    assert shared_by(2, work) == [whole, whole]


def test_a_good_order_beats_random_ones() -> None:
    model = one_head_does_it()
    record = pruning_curves(model, labelled(model), plan=CurvePlan(orders=("gradient",), random=4, step=0.25))
    lines = record.parts.curves
    assert [line.order for line in lines] == ["gradient", *["random"] * 4]
    assert [point.removed for point in lines[0].points] == [0, 2, 4, 6, 8]
    assert lines[0].points[0].value == record.parts.value == 1.0
    assert isinstance(Record.from_json(record.to_json()).parts, Curves), "read back as what it was"
    assert "encoder.1.1" in lines[0].points[-2].heads, "the head that does it all goes last"
    assert record.parts.by_kind is None, "one kind of attention"
    for place, point in enumerate(record.parts.against_random["gradient"]):
        values = [line.points[place].value for line in lines]
        assert point.value == pytest.approx(values[0] - np.mean(values[1:]))
        assert point.low <= point.value <= point.high
    assert [row.second for row in record.parts.leads] == ["random"], "there is no other order"


def test_the_share_that_is_left_is_paired_by_example() -> None:
    """Both scores of the first step are the same: their ratio does not vary, however much they do."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=99, initializer_range=0.5, **SIZE)).eval()
    task = hc.task("language-modelling", texts=sentences(40), tokenizer=word_tokenizer(), metric="loss")
    record = pruning_curves(model, task, plan=CurvePlan(orders=("gradient",), random=0, step=0.5))
    whole, *pruned = record.parts.curves[0].points
    assert whole.kept == (1.0, 1.0, 1.0)
    for point in pruned:
        assert point.kept is not None
        assert point.kept.value == pytest.approx(whole.value / point.value)
        assert point.kept.low < point.kept.value < point.kept.high


def test_a_share_that_is_left_allows_for_answers_that_change_unseen() -> None:
    """Of 30 answers with 8% lost, 9.6% of the lower ends were above the truth; a head may change none of them."""
    random, missed = np.random.default_rng(5), 0
    ones = np.ones((30, 1))
    for _ in range(200):
        right = random.random((30, 1)) < 0.85
        lost = right & (random.random((30, 1)) < 0.08)
        whole, pruned = (
            Quality.of(ACCURACY, np.concatenate([answers, ones], axis=1).astype(float))
            for answers in (right, right & ~lost)
        )
        missed += kept(pruned, whole).low > 0.92
    assert missed <= 0.05 * 200
    assert kept(whole, whole) == (1.0, 1.0, 1.0)
    same = Quality.of(ACCURACY, whole.statistics)
    assert kept(same, whole).low < 0.95


def test_each_kind_alone(tmp_path: Path) -> None:
    tokenizer = laboratory.vocabulary(tmp_path / "vocabulary")
    pairs = laboratory.parallel()["dev"]
    task = hc.task("translation", source=pairs["source"], target=pairs["target"], tokenizer=tokenizer, metric="loss")
    record = pruning_curves(
        laboratory.model(tokenizer), task, plan=CurvePlan(orders=("magnitude",), random=1, step=0.5, recompute=True)
    )
    assert [line.kinds for line in record.parts.by_kind] == [("encoder",), ("decoder",), ("cross",)]
    for line in record.parts.by_kind:
        kind = line.kinds[0]
        assert [point.kept_by_kind[kind] for point in line.points] == [8, 4, 0]
        assert all(
            point.kept_by_kind[other] == 8 for point in line.points for other in point.kept_by_kind if other != kind
        )
    # the mean from 60 to 100% is the value at 80% of a line with steps at 50 and 100%
    values = {
        line.kinds[0]: np.interp(0.8, [point.share for point in line.points], [point.value for point in line.points])
        for line in record.parts.by_kind
    }
    *of_kinds, over_random = record.parts.leads
    assert (over_random.first, over_random.second, len(of_kinds)) == ("magnitude", "random", 6)
    for row in of_kinds:
        assert row.value == pytest.approx(values[row.second] - values[row.first])  # of a loss
        assert row.low <= row.value <= row.high


def test_kinds_are_compared_at_the_shares_of_the_smallest(tmp_path: Path) -> None:
    """A decoder of 4 heads has steps at 75 and 100%: straight lines between them lie below a curve that falls late."""
    tokenizer = laboratory.vocabulary(tmp_path / "vocabulary")
    pairs = laboratory.parallel()["dev"]
    task = hc.task("translation", source=pairs["source"], target=pairs["target"], tokenizer=tokenizer, metric="loss")
    whole = laboratory.model(tokenizer, encoder_layers=3, decoder_layers=1)
    record = pruning_curves(whole, task, plan=CurvePlan(orders=("magnitude",), random=0, step=0.1))
    curves = {line.kinds[0]: {point.share: point.value for point in line.points} for line in record.parts.by_kind}
    quarters = [0.5, 0.75, 1.0]
    assert list(curves["cross"])[2:] == quarters
    assert {*quarters} < {*curves["encoder"]}
    means = {kind: _mean_beyond_60_percent(*(curve[share] for share in quarters)) for kind, curve in curves.items()}
    (row,) = (row for row in record.parts.leads if (row.first, row.second) == ("encoder", "cross"))
    assert row.value == pytest.approx(means["cross"] - means["encoder"])  # of a loss


def _mean_beyond_60_percent(at_50: float, at_75: float, at_100: float) -> float:
    """Of straight lines between these points."""
    at_60 = at_50 + 0.4 * (at_75 - at_50)
    return (0.15 * (at_60 + at_75) / 2 + 0.25 * (at_75 + at_100) / 2) / 0.4


def test_plans_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="Random orders are the control: give their number"):
        CurvePlan(orders=("random", "gradient"))
    with pytest.raises(UsageError, match="at least one order"):
        CurvePlan(orders=())
    with pytest.raises(UsageError, match="gradient"):
        CurvePlan(orders=("gradiant",))


def test_dynamics_prunes_every_epoch(tmp_path: Path) -> None:
    for epoch, name in ((3, "0.25"), (1, "001"), (2, "002"), (10, "010")):
        hc.save(classifier(epoch), tmp_path / "epochs" / name)
    task = labelled(classifier(10))
    record = dynamics(epochs_of(tmp_path), hc.load, task, step=0.5)
    assert [line.epoch for line in record.parts.by_epoch] == [0.25, 1, 2, 10]
    for line in record.parts.by_epoch:
        assert line.points[0].kept_share == 1.0
        assert [point.share for point in line.points] == [0, 0.5, 1.0]
    last = record.parts.by_epoch[-1]
    assert last.value == 1.0
    assert list(epochs_of(tmp_path, [2])) == [2]
    with pytest.raises(UsageError, match=r"no epoch 3; it has 0\.25 to 10"):
        epochs_of(tmp_path, [3])
    with pytest.raises(UsageError, match="named by epoch"):
        epochs_of(tmp_path / "epochs" / "001")


def test_a_lead_is_paired_by_example() -> None:
    """Both orders are noisy; on the same examples one is better by the same amount on each."""
    noise = np.random.default_rng(0).normal(0, 5, (40, 1))
    ones = np.ones((40, 1))
    worse, better = (Quality.of(LOSS, np.concatenate([noise + offset, ones], axis=1)) for offset in (2.0, 1.0))
    assert lead([better], [worse]) == pytest.approx((1.0, 1.0, 1.0))
    assert lead([worse], [better]).value == pytest.approx(-1.0)


def test_bench_compares_models_and_leaves_them_alone() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_key_value_heads=2, **SIZE)).eval()
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.0.0", "decoder.1.2", "decoder.1.3"]))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    record = speed({"full": model, "small": small}, bench=Bench((1, 2), (8,), written=3, repeats=2, warmup=0))
    assert {(row.model, row.what, row.batch) for row in record.parts.rows} == {
        (name, what, batch) for name in ("full", "small") for what in ("reading", "writing") for batch in (1, 2)
    }
    assert record.parts.models["small"].cache_bytes < record.parts.models["full"].cache_bytes
    assert record.parts.models["small"].stated_heads == 5
    assert {row.model for row in record.parts.others} == {"small"}
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_bench_of_an_encoder_decoder_and_of_an_encoder(tmp_path: Path) -> None:
    translator = laboratory.model(laboratory.vocabulary(tmp_path / "vocabulary"))
    bench = Bench((2,), (6,), written=2, repeats=1, warmup=0)
    assert {row.what for row in speed({"it": translator}, bench=bench).parts.rows} == {"reading", "writing"}
    assert {row.what for row in speed({"it": classifier()}, bench=bench).parts.rows} == {"reading"}
    with pytest.raises(UsageError, match="at least 1"):
        Bench(batches=(0,))


def test_writing_is_repeatable() -> None:
    """The cache is as long after a run as before: every repeat does the same work."""
    from headcount.studies.speed import TorchSubject

    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, **SIZE)).eval()
    lengths: list[int] = []

    def note(_: Any, __: Any, given: dict[str, Any]) -> None:
        cache = given.get("past_key_values")
        lengths.append(cache.get_seq_length() if cache else 0)

    hook = model.register_forward_pre_hook(note, with_kwargs=True)
    writing = TorchSubject(model).works(1, 5, 3)["writing"]
    lengths.clear()
    writing()
    writing()
    hook.remove()
    assert lengths == [5, 6, 7, 5, 6, 7]


def test_random_orders_differ_between_models_and_not_between_runs() -> None:
    """Orders that all models share would not be independent draws in an interval over models."""
    plan = CurvePlan(orders=("magnitude",), random=2, step=0.5)
    first, again, other = (
        pruning_curves(model, labelled(model), plan=plan).parts
        for model in (classifier(0), classifier(0), classifier(1))
    )

    def orders(parts: Curves) -> list[tuple[str, ...]]:
        return [line.points[1].heads for line in parts.curves if line.order == "random"]

    assert orders(first) == orders(again)
    assert not set(orders(first)) & set(orders(other))
    assert len(set(orders(first))) == 2


def test_the_lead_over_random_orders_is_a_mean_of_steps_over_orders_and_examples() -> None:
    model = one_head_does_it()
    parts = pruning_curves(model, labelled(model), plan=CurvePlan(orders=("gradient",), random=4, step=0.25)).parts
    (row,) = [row for row in parts.leads if row.second == "random"]
    middle = [gain for gain in parts.against_random["gradient"] if 0.15 <= gain.share <= 0.65]
    assert row.value == pytest.approx(np.mean([gain.value for gain in middle]))
    assert row.low < row.value < row.high
    assert row.variance is not None
    assert row.variance["seeds"] > 0


def test_which_random_orders_were_drawn_is_in_the_interval() -> None:
    """Random orders that differ much, on examples that all say the same: the examples alone would be sure."""

    def quality(loss: float) -> Quality:
        return Quality.of(LOSS, np.stack([np.full(50, loss), np.ones(50)], axis=1))

    worse = [2.0, 3.0, 7.0]
    found = gain_over([[quality(1.0)], *([quality(loss)] for loss in worse)])
    half = stats.t.ppf(0.975, 2) * np.std(worse, ddof=1) / np.sqrt(3)
    assert (found.value, found.low, found.high) == pytest.approx((3.0, 3.0 - half, 3.0 + half))
    assert found.low < 0
    assert found.parts["examples"] == pytest.approx(0)


def test_the_gain_over_two_random_orders_ends_where_the_metric_does() -> None:
    """A t-interval over two is twelve standard errors wide."""

    def quality(right: float) -> Quality:
        return Quality.of(ACCURACY, np.stack([np.arange(50) < 50 * right, np.ones(50)], axis=1).astype(float))

    gain = gain_over([[quality(0.9)], [quality(0.3)], [quality(0.8)]])
    assert gain.value == pytest.approx(0.35)
    assert (gain.low, gain.high) == (-1, 1)


def test_the_gain_over_one_random_order_may_have_a_long_tail_as_a_lead_has() -> None:
    """Of 30 log-normal losses, 12% of percentile intervals leave out the mean."""
    losses = np.random.default_rng(0).lognormal(size=30)
    better, worse = ([Quality.of(LOSS, np.stack([values, np.ones(30)], axis=1))] for values in (0 * losses, losses))
    found = gain_over([better, worse])
    assert (found.value, found.low, found.high) == pytest.approx(tuple(lead(better, worse)))


def test_texts_that_the_heads_of_a_pruned_model_were_chosen_on_are_not_held_out(tmp_path: Path) -> None:
    first, second = (
        hc.task("classification", texts=sentences(6, seed=seed), labels=[0, 1] * 3, tokenizer=word_tokenizer())
        for seed in (1, 2)
    )
    write_chosen_on(tmp_path, [Examples.of(second)])
    plan = CurvePlan(orders=("magnitude",), random=0, step=1.0, by_kind=False)
    for name, overlap in (("", 0), (str(tmp_path), 6)):
        measured = pruning_curves(classifier(), first, measure_on=second, plan=plan, name=name).parts.measured_on
        assert (measured.overlap, measured.held_out) == (overlap, not overlap)


@pytest.mark.parametrize(("orders", "reads_text"), [(("magnitude",), False), (("magnitude", "gradient"), True)])
def test_orders_that_read_no_text_choose_on_none(orders: tuple[str, ...], reads_text: bool) -> None:
    task = hc.task("classification", texts=sentences(6), labels=[0, 1] * 3, tokenizer=word_tokenizer())
    plan = CurvePlan(orders=orders, random=1, step=1.0, by_kind=False)
    measured = pruning_curves(classifier(), task, plan=plan).parts.measured_on
    assert len(measured.chosen_on) == reads_text
    assert measured.held_out is not reads_text


def test_texts_that_the_heads_of_any_epoch_were_chosen_on_are_not_held_out(tmp_path: Path) -> None:
    """`train` of a pruned model writes them into the folder of every epoch; claim M9 was decided on them."""
    for epoch in (1, 2):
        hc.save(classifier(epoch), tmp_path / "epochs" / f"{epoch:03d}")
    task = labelled(classifier(2))
    measure_on = hc.task("classification", texts=["w3 w9", "w9 w4"], labels=[0, 1], tokenizer=word_tokenizer())
    apart = dynamics(epochs_of(tmp_path), hc.load, task, measure_on=measure_on, step=1.0).parts.measured_on
    assert (apart.held_out, len(apart.chosen_on)) == (True, 1)
    write_chosen_on(tmp_path / "epochs" / "002", [Examples.of(measure_on)])
    seen = dynamics(epochs_of(tmp_path), hc.load, task, measure_on=measure_on, step=1.0).parts.measured_on
    assert (seen.held_out, seen.overlap, seen.much_seen) == (False, 2, True)
    write_chosen_on(tmp_path / "epochs" / "001", [Examples.of(measure_on)])  # one text, not one for each epoch
    same = dynamics(epochs_of(tmp_path), hc.load, task, measure_on=measure_on, step=1.0).parts.measured_on
    assert same == seen
