"""Stages combine: every combination is what its stages give one after the other, and a kill changes nothing."""

from __future__ import annotations

import copy
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import nn

import headcount as hc
import zoo
from forks import PATIENCE, started
from headcount.errors import FolderError, MaskError, ModelError, NotRemovable, UsageError, VerificationError
from headcount.heads import Head, HeadGrid
from headcount.progress import silent
from headcount.pruning.adaptation import adapting_recipe, learn, only_trained, trainable
from headcount.pruning.choosers.given import Given
from headcount.pruning.folder import prune_in_folder
from headcount.pruning.pipeline import Data, Execution, Pipeline, chooser_of
from headcount.pruning.saving import Saving
from headcount.pruning.trail import has_trail
from headcount.sites.fingerprint import model_seed, weight_hash
from headcount.sites.running import full_precision
from headcount.surgery.exercise import exercise
from headcount.surgery.price import Price
from tokens import sentences, word_tokenizer

TUNING = hc.Tuning(steps=4, distill=0.5, warmup=1, batch=60, chunk=60, rate=1e-3)

pytestmark = pytest.mark.usefixtures("unverified")


def task(seed: int = 0, count: int = 12) -> Any:
    texts, labels = sentences(count, seed=seed), [number % 2 for number in range(count)]
    return hc.task("classification", texts=texts, labels=labels, tokenizer=word_tokenizer())


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def same(left: nn.Module, right: nn.Module) -> bool:
    one, other = left.state_dict(), right.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_model_with_adapters_is_refused_before_heads_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.pruning.run.exercise", exercise)
    peft = pytest.importorskip("peft")
    wrapped = peft.get_peft_model(zoo.build("bert"), peft.LoraConfig(target_modules=["query"]))
    with pytest.raises(NotRemovable, match=r"PEFT.*merge_and_unload"):
        hc.prune(wrapped, choose="magnitude", keep="50%")
    elsewhere = peft.get_peft_model(zoo.build("bert"), peft.LoraConfig(target_modules=["intermediate.dense"]))
    with pytest.raises(ModelError, match=r"PeftModel is a model with adapters \(PEFT\).*merge_and_unload"):
        hc.prune(elsewhere, choose="magnitude", keep="50%")


def test_a_search_is_compensated_and_tuned_as_by_hand(tmp_path: Path) -> None:
    """Greedy on one set of data, tuned on another: the same weights as stage by stage, to the bit."""
    model, choose, train, measure = zoo.build("bert").eval(), task(1), task(2, 20), task(3)
    result = hc.prune(
        model, train, choose="greedy", keep="60%", candidates=2, group=2, choose_on=choose, measure_on=measure, seed=3,
        tune=replace(TUNING, distill=0.0),
    )  # fmt: skip
    search = hc.prune(model, choose, choose="greedy", keep="60%", candidates=2, group=2, measure_on=measure)
    assert result.mask == search.mask
    small = hc.remove(model, search.mask, compensate="lstsq", task=choose)
    assert same(small, search.model)
    seed = model_seed(weight_hash(model), 3)
    recipe = adapting_recipe(hc.Tuning(warmup=1, batch=60, chunk=60), 4, 1e-3, falls=True, seed=seed)
    with only_trained(small, None):
        learn(small, trainable(train), recipe, tmp_path, Execution())
    assert same(small, result.model)
    parts = result.record.parts
    assert parts.pipeline == "greedy/tuned"
    assert parts.quality.cut == search.record.parts.quality.after
    assert parts.quality.after.value == measure.quality(small).value
    assert parts.training["tuning"].steps == 4
    assert parts.measured_on.held_out
    assert parts.change == measure.quality(small).against(measure.quality(model))
    assert parts.change.difference == pytest.approx(parts.quality.after.value - parts.quality.before.value)


def test_heads_that_are_given_can_be_tuned_and_need_no_task_otherwise() -> None:
    model = zoo.build("bert").eval()
    mask = hc.locate(model).mask(off=["encoder.0.1", "encoder.2.3"])
    with pytest.raises(UsageError, match=r"mask of 0 and 1; \S+ has 0\.5\. Turn scores into a mask"):
        hc.prune(model, choose=mask.map(lambda value: value / 2))
    plain = hc.prune(model, choose=mask)
    assert plain.mask == mask
    assert same(plain.model, hc.remove(model, mask))
    tuned = hc.prune(model, task(), choose=mask, tune=2)
    assert tuned.mask == mask
    assert not same(tuned.model, plain.model)
    with pytest.raises(UsageError, match="no data to calibrate"):
        hc.prune(model, choose=mask, compensate="lstsq")
    with pytest.raises(UsageError, match="give a task"):
        hc.prune(model, choose=mask, tune=2)
    with pytest.raises(UsageError, match="no data to choose heads on"):
        hc.prune(model, keep="50%")
    with pytest.raises(UsageError, match="keep must be a text such as '10' or '50%', or a Budget; got 5"):
        hc.prune(model, keep=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"choose must be a name .*; got \['encoder.0.1'\]"):
        hc.prune(model, choose=["encoder.0.1"])  # type: ignore[arg-type]


def test_scores_of_chance_have_a_seed() -> None:
    model, data = zoo.build("bert").eval(), task()
    masks = [hc.prune(model, data, choose="random", keep=hc.Budget(heads=6), seed=seed).mask for seed in (0, 0, 1)]
    assert masks[0] == masks[1] != masks[2]
    assert masks[2] == hc.select(hc.score("random", model, data, seed=1), hc.Budget(heads=6))


def test_from_scratch_the_heads_are_those_of_the_trained_model() -> None:
    model, data = zoo.build("bert").eval(), task()
    scratch = hc.Tuning(steps=1, tuner="scratch", batch=60, chunk=60)
    result = hc.prune(model, data, keep="50%", tune=scratch, seed=1)
    assert result.mask == hc.prune(model, data, keep="50%").mask
    name = "bert.embeddings.word_embeddings.weight"
    assert not torch.allclose(result.model.state_dict()[name], model.state_dict()[name], atol=0.05)


def test_the_quality_of_new_weights_is_not_that_of_masked_heads() -> None:
    model, data, measure = zoo.build("bert").eval(), task(), task(3, 40)
    mask = hc.locate(model).mask(off=["encoder.0.*"])
    scratch = hc.Tuning(steps=1, tuner="scratch", batch=60, chunk=60)
    new = hc.prune(model, data, choose=mask, tune=scratch, measure_on=measure).record.parts
    assert new.curve is None
    assert list(new.stages) == ["whole model", "new random weights", "after tuning"]
    ranked = hc.prune(model, data, keep="50%", tune=scratch, measure_on=measure)
    with hc.masked(model, ranked.mask):
        assert ranked.record.parts.curve[-1].value == measure.quality(model).value


def test_models_do_not_share_random_numbers_of_training() -> None:
    """New weights, gates and the order of data would otherwise be the same in all models of a study."""
    model, data = zoo.build("bert").eval(), task()
    other = copy.deepcopy(model)
    next(other.parameters()).data.mul_(0.5)
    scratch = hc.Tuning(steps=1, tuner="scratch", batch=60, chunk=60, rate=1e-9)
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    made = [
        hc.prune(source, data, choose=hc.locate(source).mask(off=["encoder.0.1"]), tune=scratch, seed=1)
        for source in (model, model, other)
    ]
    first, again, different = (result.model.state_dict()[name] for result in made)
    assert torch.equal(first, again)
    assert not torch.allclose(first, different, atol=1e-3)
    assert {result.record.signature.seed for result in made} == {1}, "the seed of the command"


def test_what_verification_refuses_is_not_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.pruning.run.remove", hc.remove)
    monkeypatch.setattr("headcount.surgery.verify.Expectation.compare", lambda *_: ({}, {"logits": "logits: far."}))
    monkeypatch.setattr("headcount.training.loop.Loop.run", lambda _: pytest.fail("trained"))
    with pytest.raises(VerificationError, match="logits: far"):
        hc.prune(zoo.build("bert").eval(), task(), keep="50%", tune=3)


_COMPENSATED: dict[str, Any] = {"keep": hc.Budget(heads=8), "compensate": "lstsq", "tune": TUNING}
_KILLED: dict[str, tuple[dict[str, Any], dict[str, int]]] = {  # options, and stage -> progress at which it is killed
    "greedy": ({**_COMPENSATED, "candidates": 1}, {"taking heads": 1, "compensating": 1, "fine-tuning": 3}),
    "gradient": (_COMPENSATED, {"ranking": 1, "compensating": 1, "fine-tuning": 3}),
    "fisher": (_COMPENSATED, {"Fisher": 1, "compensating": 1, "fine-tuning": 3}),
    "l0": ({"keep": hc.Budget(heads=8), "tune": TUNING, "steps": 4}, {"learning gates": 3, "fine-tuning": 3}),
}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("choose", _KILLED)
def test_a_kill_at_any_stage_changes_nothing(choose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 while heads are chosen, while the compensation is calibrated, and while weights are trained."""
    monkeypatch.setattr("headcount.training.loop.LOG_EVERY", 1)
    model, data = zoo.build("bert").eval(), task()
    options, stages = _KILLED[choose]

    def prune(folder: Path, **execution: Any) -> Any:
        return hc.prune(model, data, choose=choose, seed=2, folder=folder, **execution, **options)

    whole = prune(tmp_path / "whole")
    for stage, step in stages.items():

        def kill(part: str, done: int, of: int, stage: str = stage, step: int = step) -> None:
            if stage in part and done >= step:
                os.kill(os.getpid(), signal.SIGKILL)

        process = started(lambda kill=kill: prune(tmp_path / "killed", progress=kill, save_seconds=0.0))
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL, f"{stage} was not reached"
    resumed = prune(tmp_path / "killed")
    assert resumed.mask == whole.mask
    assert same(resumed.model, whole.model)
    assert resumed.record.parts.compensation == whole.record.parts.compensation
    assert resumed.record.parts.removed_heads == whole.record.parts.removed_heads
    searches = [
        [replace(step, seconds=0) for step in run.record.parts.choice_details.search or ()] for run in (resumed, whole)
    ]
    assert searches[0] == searches[1]


@pytest.mark.parametrize("chooser", ["gradient", "greedy"])
def test_a_folder_is_not_gone_on_with_by_another_tokenizer(chooser: str, tmp_path: Path) -> None:
    """greedy alone does not train: its steps are in a folder beside the result."""
    tuning = TUNING if chooser == "gradient" else None
    pipeline = Pipeline(chooser_of(chooser), hc.Budget(share=0.5), tuning=tuning)

    def run(tokenizer: Any, progress: Any) -> None:
        texts = hc.task("classification", texts=sentences(12), labels=[0, 1] * 6, tokenizer=tokenizer)
        execution = Execution(progress=progress)
        prune_in_folder(pipeline, zoo.build("bert").eval(), Data(texts), tmp_path / "out", Saving("bert"), execution)

    def stop(stage: str, done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(word_tokenizer(), stop)
    with pytest.raises(UsageError, match=r"tokens: .* there, .* now"):
        run(word_tokenizer(framed=True), silent)
    if chooser == "gradient":  # a finished result is not that of another tokenizer either
        run(word_tokenizer(), silent)
        run(word_tokenizer(), silent)
        with pytest.raises(UsageError, match=r"tokens: .* there, .* now"):
            run(word_tokenizer(framed=True), silent)


def test_a_model_is_not_written_over_that_of_a_training_run(tmp_path: Path) -> None:
    """The run, repeated, would return the record of the other model as its own."""
    texts = hc.task("classification", texts=sentences(12), labels=[0, 1] * 6, tokenizer=word_tokenizer())
    out = tmp_path / "out"

    def run(pipeline: Pipeline, saving: Saving) -> Any:
        return prune_in_folder(pipeline, zoo.build("bert").eval(), Data(texts), out, saving)

    tuned = Pipeline(chooser_of("gradient"), hc.Budget(share=0.5), tuning=TUNING)
    first = run(tuned, Saving("bert"))
    with pytest.raises(UsageError, match="out is the folder of a training run"):
        run(Pipeline(Given(remove=("encoder.0.0",))), Saving("bert", overwrite=True))
    assert run(tuned, Saving("bert")).to_json() == first.to_json()


def test_code_that_is_asked_for_later_is_not_left_out_without_a_word(tmp_path: Path) -> None:
    def run(*, standalone: bool) -> Any:
        pipeline, out = Pipeline(Given(remove=("encoder.0.0",)), tuning=TUNING), tmp_path / "out"
        saving = Saving("bert", standalone=standalone)
        return prune_in_folder(pipeline, zoo.build("bert").eval(), Data(task()), out, saving)

    first = run(standalone=False)
    with pytest.raises(FolderError, match=r"finished, without code that loads it \(--standalone\)"):
        run(standalone=True)
    assert run(standalone=False).to_json() == first.to_json()


def test_a_finished_folder_is_not_the_result_of_other_named_heads(tmp_path: Path) -> None:
    def run(given: Given) -> Any:
        pipeline, data = Pipeline(given, tuning=TUNING), Data(task())
        return prune_in_folder(pipeline, zoo.build("bert").eval(), data, tmp_path / "out", Saving("bert"))

    kept = Given(keep=("encoder.0.*", "encoder.1.0"))
    first = run(kept)
    assert list(first.signature.arguments["keep_heads"]) == ["encoder.0.*", "encoder.1.0"]
    with pytest.raises(UsageError, match=r"other settings \(pipeline: .*keep_heads"):
        run(Given(keep=("encoder.0.1", "encoder.1.3")))
    assert run(kept).parts == first.parts


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_half_precision_are_tuned_in_full_and_rounded_once(dtype: torch.dtype) -> None:
    """Adam changes a weight by about the rate a step; in half precision small steps are lost or come out huge."""
    model = zoo.build("bert").eval().to(dtype)
    mask = hc.locate(model).mask(off=["encoder.0.1"])
    result = hc.prune(model, task(), choose=mask, tune=replace(TUNING, rate=1e-5))
    before, after = hc.remove(model, mask).state_dict(), result.model.state_dict()
    assert {value.dtype for value in after.values() if value.is_floating_point()} == {dtype}
    rounding = {name: value.float().abs() * torch.finfo(dtype).eps + 1e-7 for name, value in before.items()}
    assert all(((after[name] - before[name]).abs() <= 6e-5 + rounding[name]).all() for name in before)
    assert any(not torch.equal(after[name], before[name]) for name in before)


def test_weights_get_their_precision_back_after_an_exception() -> None:
    model = zoo.build("bert").eval().to(torch.bfloat16)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(KeyboardInterrupt), full_precision(model):
        _interrupted_training(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert all(parameter.grad is None for parameter in model.parameters())


def _interrupted_training(model: Any) -> None:
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    model(torch.tensor([[5, 6, 7]])).logits.sum().backward()
    raise KeyboardInterrupt


@pytest.mark.parametrize("options", [{"choose": "greedy", "keep": "60%"}, {"keep": "60%", "tune": 2}])
def test_states_of_another_model_data_or_seed_are_not_gone_on_with(options: dict[str, Any], tmp_path: Path) -> None:
    model, folder = zoo.build("bert").eval(), tmp_path / "states"
    with pytest.raises(UsageError, match="there are only"):
        hc.prune(model, task(), folder=folder, **{**options, "keep": "99"})
    result = hc.prune(model, task(), folder=folder, **options)
    assert same(hc.prune(model, task(), folder=folder, **options).model, result.model)
    with pytest.raises(UsageError, match=r"other settings \(weights: "):
        hc.prune(zoo.build("bert", seed=1).eval(), task(), folder=folder, **options)
    with pytest.raises(UsageError, match=r"other settings \(data: "):
        hc.prune(model, task(4), folder=folder, **options)
    with pytest.raises(UsageError, match=r"other settings \(pipeline: "):
        hc.prune(model, task(), folder=folder, seed=5, **options)


def test_steps_on_texts_without_predictions_do_not_spoil_the_loss(tmp_path: Path) -> None:
    """Texts of one token stand together in a step, of which a language model predicts nothing."""
    texts = [*sentences(30, shortest=5, longest=6), *["w5"] * 60]
    data = hc.task("language-modelling", texts=texts, tokenizer=word_tokenizer())
    hc.prune(
        zoo.build("llama").eval(), data, choose="magnitude", keep="50%", folder=tmp_path,
        tune=hc.Tuning(steps=20, batch=20, chunk=20),
    )  # fmt: skip
    (line,) = [row for row in read_lines(tmp_path / "tune" / "metrics.jsonl") if "rate" in row]
    assert 3 < line["loss"] < 7


def test_texts_that_an_earlier_pruning_chose_on_are_not_held_out(tmp_path: Path) -> None:
    """Heads chosen on A and measured on B, then chosen on B and measured on A: the second quality is of seen texts."""
    hc.save(zoo.build("bert").eval(), tmp_path / "whole")

    def measured(source: str, out: str, chosen_on: Any, measure: Any) -> Any:
        pipeline, model = Pipeline(chooser_of("gradient"), hc.Budget(share=0.75)), hc.load(str(tmp_path / source))
        data, saving = Data(choose=chosen_on, measure=measure), Saving(str(tmp_path / source))
        return prune_in_folder(pipeline, model, data, tmp_path / out, saving).parts.measured_on

    assert measured("whole", "small", task(1), task(2)).held_out
    again = measured("small", "smaller", task(2), task(1))
    assert (again.held_out, again.overlap, len(again.chosen_on)) == (False, 12, 2)
    assert measured("small", "third", task(2), task(3)).held_out


def test_a_search_says_which_texts_its_heads_were_chosen_on() -> None:
    """With compensation in the loop those that it is fitted on, without one those to choose heads on."""
    model, options, texts, others = zoo.build("bert").eval(), {"choose": "greedy", "keep": "60%"}, task(1), task(2)
    fitted = hc.prune(model, choose_on=texts, calibrate_on=others, **options)
    on_others = fitted.record.parts.measured_on
    assert [part.fingerprint for part in fitted.chosen_on] == [others.fingerprint]
    assert on_others is not None
    assert (on_others.held_out, on_others.overlap) == (False, 12)
    assert hc.prune(model, calibrate_on=others, measure_on=texts, **options).mask == fitted.mask
    plain = hc.prune(model, choose_on=texts, measure_on=others, compensate="none", **options)
    assert [part.fingerprint for part in plain.chosen_on] == [texts.fingerprint]
    chosen: list[Any] = []
    with pytest.raises(UsageError, match="no data to choose heads on"):
        hc.prune(model, measure_on=others, compensate="none", progress=lambda *report: chosen.append(report), **options)
    assert not chosen, "the data is missing before heads are chosen"


def test_settings_of_a_compensation_are_refused_without_one() -> None:
    model, options = zoo.build("llama").eval(), {"choose": "magnitude", "keep": "50%"}
    texts = hc.task("language-modelling", texts=sentences(4), tokenizer=word_tokenizer())
    with pytest.raises(UsageError, match="add_bias is for a compensation"):
        hc.prune(model, texts, add_bias=True, **options)
    with pytest.raises(UsageError, match=r"calibrate_on is for a compensation.*choose_on"):
        hc.prune(model, texts, calibrate_on=texts, **options)


@pytest.mark.parametrize(("choose", "options"), [("greedy", {}), ("fisher", {}), ("l0", {"steps": 2}), ("random", {})])
def test_a_budget_of_milliseconds_has_as_many_heads_after_an_interruption(
    choose: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timed anew, a model takes another time, and the weights in training had other shapes."""

    def prune(rest_of_model: float) -> Any:
        monkeypatch.setattr(Price, "_milliseconds", lambda _, small: rest_of_model + len(hc.locate(small).heads))
        return hc.prune(model, train, folder=tmp_path, **settings)

    model, train = zoo.build("bert").eval(), task(2, 20)
    settings = {"choose": choose, "keep": "80%ms", "tune": replace(TUNING, distill=0.0), **options}
    first, again = prune(0.0), prune(10.0)
    assert first.mask == again.mask
    assert same(first.model, again.model)


def test_a_budget_of_milliseconds_is_not_missed_after_it_was_met(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {12: iter([12.0] * 9), 11: iter([9.0, 30.0]), 0: iter([1.0] * 9)}  # by the heads left
    monkeypatch.setattr(Price, "_milliseconds", lambda _, small: next(times[len(hc.locate(small).heads)]))
    result = hc.prune(zoo.build("bert").eval(), task(), choose="greedy", keep="80%ms", candidates=1)
    assert len(result.mask.kept) == 11


def test_a_budget_that_no_search_can_meet_is_refused_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.pruning.search.Search.steps", None)
    with pytest.raises(UsageError, match="Pruning heads cannot save more"):
        hc.prune(zoo.build("bert").eval(), task(), choose="greedy", keep="10%params")


@pytest.mark.parametrize("choose", ["greedy", "fisher", "magnitude"])
def test_a_budget_of_parameters_includes_an_added_bias(choose: str) -> None:
    model = zoo.build("llama").eval()
    texts = hc.task("language-modelling", texts=sentences(6), tokenizer=word_tokenizer())
    without_bias = hc.prune(model, texts, choose=choose, keep=hc.Budget(heads=len(hc.locate(model).heads) - 1))
    most = without_bias.record.parts.cost.after.parameters
    settings: dict[str, Any] = {"choose": choose, "compensate": "lstsq", "add_bias": True}
    result = hc.prune(model, texts, keep=hc.Budget(parameters=most), **settings)
    assert result.record.parts.cost.after.parameters <= most


def test_a_full_disk_at_the_first_state_of_fine_tuning_leaves_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise FolderError("The disk is full")

    monkeypatch.setattr("headcount.training.loop.write_state", full)
    pipeline = Pipeline(chooser_of("greedy"), hc.Budget(heads=11), tuning=replace(TUNING, distill=0.0))
    data = Data(train=task(2, 20), choose=task(1), measure=task(3))
    with pytest.raises(FolderError):
        prune_in_folder(pipeline, zoo.build("bert").eval(), data, tmp_path / "out", Saving("bert"))
    monkeypatch.undo()
    monkeypatch.setattr("headcount.pruning.search.Search.steps", None)  # nothing is searched again
    record = prune_in_folder(pipeline, zoo.build("bert").eval(), data, tmp_path / "out", Saving("bert"))
    assert len(record.parts.heads) == 11


@pytest.fixture
def no_accelerator() -> Iterator[None]:
    AcceleratorState._reset_state()
    yield
    AcceleratorState._reset_state()


@pytest.mark.usefixtures("no_accelerator")
def test_another_precision_of_the_process_is_refused_before_heads_are_chosen(tmp_path: Path) -> None:
    Accelerator(mixed_precision="bf16")
    stages: list[str] = []
    model, settings = zoo.build("bert").eval(), {"choose": "greedy", "keep": "11"}
    with pytest.raises(UsageError, match=r"trains in float32, but .* uses bf16.*AcceleratorState\._reset_state\(\)"):
        hc.prune(model, task(), tune=2, progress=lambda stage, *_: stages.append(stage), **settings)
    with pytest.raises(UsageError, match="trains in float32"):
        prune_in_folder(
            Pipeline(chooser_of("greedy"), hc.Budget(heads=11), tuning=TUNING), model, Data(train=task()),
            tmp_path / "out", Saving("bert"),
        )  # fmt: skip
    assert not stages
    hc.prune(model, task(), **settings)  # trains nothing
    AcceleratorState._reset_state()
    assert hc.prune(model, task(), tune=2, **settings).record.parts.training["tuning"].steps == 2


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("options", [{"choose": "gradient"}, {"choose": "l0", "steps": 2}])
def test_training_does_not_depend_on_the_gradient_mode_of_the_caller(mode: Any, options: dict[str, Any]) -> None:
    model = zoo.build("bert").eval()
    plain = hc.prune(model, task(), keep="11", tune=2, **options)
    with mode():
        result = hc.prune(model, task(), keep="11", tune=2, **options)
    assert same(result.model, plain.model)
    assert not any(parameter.is_inference() for parameter in result.model.parameters())


def test_a_mask_of_another_model_is_refused_and_one_of_the_whole_model_is_not() -> None:
    model = zoo.build("bert").eval()
    sites = hc.locate(model)
    for mask, message in (
        (HeadGrid([(head, int(head.layer > 0)) for head in sites.heads if head.layer < 2]), "no value for encoder.2.0"),
        (HeadGrid([*sites.mask(off="encoder.0.1").items(), (Head("encoder", 7, 0), 0)]), "contains encoder.7.0"),
    ):
        with pytest.raises(MaskError, match=f"{message}.*made for another model"):
            hc.prune(model, choose=mask)
    small = hc.remove(model, sites.mask(off="encoder.0.1"))
    again = hc.prune(small, choose=sites.mask(off=["encoder.0.1", "encoder.2.3"]))  # the first is gone already
    assert same(again.model, hc.remove(model, sites.mask(off=["encoder.0.1", "encoder.2.3"])))


def test_no_kind_is_not_every_kind() -> None:
    with pytest.raises(
        UsageError, match=r"kinds=\[\] names no kind.*Leave it out for all kinds, or name some of encoder"
    ):
        hc.prune(zoo.build("bert").eval(), task(), keep="6", kinds=[])


def test_the_folder_of_states_may_be_a_text(tmp_path: Path) -> None:
    options: dict[str, Any] = {"choose": "greedy", "keep": "11", "candidates": 1}
    hc.prune(zoo.build("bert").eval(), task(), folder=str(tmp_path / "states"), **options)
    assert has_trail(tmp_path / "states")
    with pytest.raises(UsageError, match="folder must be the path of a folder; got int"):
        hc.prune(zoo.build("bert").eval(), task(), folder=5, **options)


def test_states_of_short_epochs_are_written_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step passes over all of these texts: the state was written after each of them."""
    steps: list[int] = []
    monkeypatch.setattr("headcount.training.loop.write_state", lambda *given: steps.append(given[3].step))
    tuned = hc.prune(zoo.build("bert").eval(), task(), keep="11", tune=replace(TUNING, steps=6, batch=500, chunk=500))
    assert len(tuned.record.parts.training["tuning"].epochs) == 6
    assert steps == [6]


@pytest.mark.filterwarnings("ignore:.*did not run on the data")
@pytest.mark.parametrize("choose", ["gradient", "ablation", "fisher", "greedy", "l0", "subset"])
def test_heads_that_do_not_run_are_not_chosen_among(choose: str) -> None:
    """Nothing is known about them, and they would be the first to go."""
    bart = zoo.idle_cross()
    data = hc.task("language-modelling", texts=sentences(12), tokenizer=word_tokenizer())
    options: dict[str, Any] = {"steps": 2, "tune": TUNING} if choose in ("l0", "subset") else {}
    with pytest.raises(UsageError, match=r"cross\.0.* did not run on the data.* kinds=\('decoder',\)"):
        hc.prune(bart, data, keep="50%", choose=choose, **options)
    pruned = hc.prune(bart, data, keep="50%", choose=choose, kinds=("decoder",), **options)
    assert len(pruned.mask.of("decoder").kept) == 4
    assert len(pruned.mask.of("cross").kept) == 8
