"""Fine-tuning: a classifier and a language model learn from labelled and plain text; interrupted or not."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file
from transformers import BertConfig, BertForSequenceClassification, BertModel, LlamaConfig, LlamaForCausalLM

import headcount as hc
from headcount.checkpoints.chosen_on import read_chosen_on, write_chosen_on
from headcount.errors import UsageError
from headcount.record import Record
from headcount.report.sections import training
from headcount.studies.fine_tuning import RECIPE, FineTuningSettings, fine_tune, resolved_recipe
from headcount.tasks.overlap import Examples
from headcount.training import loop
from headcount.training.run import Watch
from tokens import word_tokenizer

GOOD, BAD = "w10", "w11"
TEXTS = [f"w5 {noun} w6 {how}{mood}" for noun in ("w7", "w8") for how in ("", "w9 ") for mood in (GOOD, BAD)] * 6
LABELS = [int(GOOD in text) for text in TEXTS]
FAST = replace(RECIPE, batch=80, chunk=40, rate=1e-2, epochs=15)
SETTINGS = FineTuningSettings("classification", "start", "here", FAST, examples=None, warmup=None)


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A plain encoder without a classifier, as pretrained ones come."""
    torch.manual_seed(0)
    config = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32)
    BertModel(config).save_pretrained(tmp_path / "start")
    return tmp_path / "start"


def task(tokenizer: Any) -> Any:
    return hc.task("classification", texts=TEXTS, labels=LABELS, tokenizer=tokenizer)


def tuned(start: Path, out: Path, settings: FineTuningSettings = SETTINGS, **options: Any) -> Any:
    torch.manual_seed(0)
    model = hc.load(start, task="classification", classes=["bad", "good"])
    tokenizer = word_tokenizer(32)
    data = task(tokenizer)
    return fine_tune(model, tokenizer, data, data, out, settings, accelerator=Accelerator(cpu=True), **options)


def test_a_classifier_learns(start: Path, tmp_path: Path) -> None:
    record = tuned(start, tmp_path / "out")
    assert record.parts.epochs[-1].measures["accuracy"] > record.parts.before["accuracy"]
    model = hc.load(tmp_path / "out")
    assert type(model).__name__ == "BertForSequenceClassification"
    assert model.config.id2label == {0: "bad", 1: "good"}
    assert task(word_tokenizer(32)).quality(model).value > 0.9


def test_a_pruned_model_remembers_what_its_heads_were_chosen_on(start: Path, tmp_path: Path) -> None:
    """A later evaluation or pruning on these texts was called held out."""
    chosen = Examples("dev", "data", ("one", "two"))
    settings = replace(SETTINGS, start=str(start), recipe=replace(SETTINGS.recipe, epochs=1))
    tuned(start, tmp_path / "whole", settings)
    assert read_chosen_on(str(tmp_path / "whole")) == ()
    write_chosen_on(start, [chosen])
    tuned(start, tmp_path / "out", settings)
    learned = Examples.of(task(word_tokenizer(32)))
    for folder in ("out", "out/epochs/001"):
        assert read_chosen_on(str(tmp_path / folder)) == (chosen, learned)


def test_interrupted_or_not_the_same_model(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOG_EVERY", 1)

    class Enough(Exception):
        pass

    def stop(report: Any) -> None:
        if report.step >= 5:  # of 9, in the second epoch
            raise Enough

    settings = replace(SETTINGS, recipe=replace(SETTINGS.recipe, epochs=3))
    tuned(start, tmp_path / "whole", settings)
    with pytest.raises(Enough):
        tuned(start, tmp_path / "parts", settings, watch=Watch(step=stop), save_seconds=0.0)
    tuned(start, tmp_path / "parts", settings)
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_other_text_under_an_interrupted_run_is_refused(start: Path, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(report: Any) -> None:
        raise Enough

    with pytest.raises(Enough):
        tuned(start, tmp_path / "out", watch=Watch(step=stop), save_seconds=0.0)
    tokenizer = word_tokenizer(32)
    changed = hc.task("classification", texts=[*TEXTS[:-1], "w5"], labels=LABELS, tokenizer=tokenizer)
    model = hc.load(start, task="classification", classes=["bad", "good"])
    with pytest.raises(UsageError, match="other settings \\(train: "):
        fine_tune(model, tokenizer, changed, task(tokenizer), tmp_path / "out", SETTINGS)


def test_another_tokenizer_or_start_under_an_interrupted_run_is_refused(start: Path, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(report: Any) -> None:
        raise Enough

    with pytest.raises(Enough):
        tuned(start, tmp_path / "out", watch=Watch(step=stop), save_seconds=0.0)
    framed = word_tokenizer(32, framed=True)
    torch.manual_seed(0)
    model = hc.load(start, task="classification", classes=["bad", "good"])
    with pytest.raises(UsageError, match="other settings \\(tokens: "):
        fine_tune(model, framed, task(framed), task(framed), tmp_path / "out", SETTINGS)
    model.classifier.bias.data += 1
    words = word_tokenizer(32)
    with pytest.raises(UsageError, match="other settings \\(weights: "):
        fine_tune(model, words, task(words), task(words), tmp_path / "out", SETTINGS)


def test_a_language_model_learns(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tokenizer = word_tokenizer(32)
    config = LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4
    )
    data = hc.task("language-modelling", texts=TEXTS, tokenizer=tokenizer)
    settings = replace(SETTINGS, task="language-modelling")
    record = fine_tune(
        LlamaForCausalLM(config), tokenizer, data, data, tmp_path / "out", settings, accelerator=Accelerator(cpu=True)
    )
    assert record.parts.epochs[-1].measures["loss"] < 0.8 * record.parts.before["loss"]


def test_the_loss_is_a_mean_over_predictions() -> None:
    tokenizer = word_tokenizer(32)
    config = LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
    )
    model = LlamaForCausalLM(config).eval()
    data = hc.task("language-modelling", texts=TEXTS[:6], tokenizer=tokenizer, batch_size=3)
    rows = [0, 3, 5]
    batch = data.batch(rows)
    torch.testing.assert_close(data.loss_sum(model, batch) / data.targets(rows), data.loss(model, batch))
    assert data.held_out(model)["loss"] == pytest.approx(float(torch.tensor(data.quality(model).value).log()), rel=1e-5)


def test_what_cannot_be_watched_is_refused(start: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be watched by bleu"):
        tuned(start, tmp_path / "out", replace(SETTINGS, recipe=replace(SETTINGS.recipe, watch="bleu")))
    assert not (tmp_path / "out").exists()


def test_the_record_has_the_recipe_that_was_used(start: Path, tmp_path: Path) -> None:
    """Batch, steps and warm-up follow from the data; the settings of the folder are those that were given."""
    record = tuned(start, tmp_path / "out", replace(SETTINGS, recipe=replace(FAST, epochs=1), examples=4, warmup=0.5))
    used, steps = record.signature.arguments["recipe"], record.parts.steps
    assert (used["steps"], used["warmup"], used["cooldown"]) == (steps, round(0.5 * steps), steps - round(0.5 * steps))
    assert used["batch"] < SETTINGS.recipe.batch
    given = json.loads((tmp_path / "out" / "training" / "settings.json").read_text())["recipe"]
    assert given["batch"] == SETTINGS.recipe.batch


def test_the_sentence_on_training_has_the_numbers_of_the_model(start: Path, tmp_path: Path) -> None:
    """It had those of the last epoch, also where the model is an earlier one."""
    record = tuned(start, tmp_path / "out", replace(SETTINGS, recipe=replace(FAST, epochs=1)))
    other = {name: dict.fromkeys(measures, 9.0) for name, measures in record.parts.candidates.items()}
    other["epoch 1"] = {"loss": 0.25}
    parts = replace(record.parts, candidate="epoch 1", candidates=other)
    assert "the model is epoch 1: loss 0.250" in training.SECTION.answer(replace(record, parts=parts))


def test_what_can_be_watched_is_what_is_measured() -> None:
    words, texts = word_tokenizer(32, mask="w31"), {"texts": TEXTS}
    masked = hc.task("masked-language-modelling", **texts, tokenizer=words, metric="accuracy")
    assert masked.watched == ("accuracy",)
    classified = hc.task("classification", **texts, labels=LABELS, tokenizer=words, metric="f1")
    assert classified.watched == ("accuracy", "f1")


def test_a_classifier_of_another_size_is_made_anew(start: Path, tmp_path: Path) -> None:
    tuned(start, tmp_path / "two", replace(SETTINGS, recipe=replace(FAST, epochs=1)))
    model = hc.load(tmp_path / "two", task="classification", classes=["a", "b", "c"])
    assert model.classifier.out_features == 3


def planted(count: int, seed: int) -> tuple[list[str], list[int]]:
    """Texts of 6 to 12 words; one of the words alone decides the label."""
    draw, texts, labels = random.Random(seed), [], []
    for _ in range(count):
        words = [f"w{draw.randint(12, 98)}" for _ in range(draw.randint(6, 12))]
        labels.append(draw.randint(0, 1))
        words[draw.randrange(len(words))] = GOOD if labels[-1] else BAD
        texts.append(" ".join(words))
    return texts, labels


def test_two_epochs_of_a_small_set_are_enough_with_the_defaults(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tokenizer = word_tokenizer(framed=True)
    config = BertConfig(
        vocab_size=99, hidden_size=128, num_hidden_layers=1, num_attention_heads=4, intermediate_size=256,
        initializer_range=0.1, num_labels=2,
    )  # fmt: skip
    train, dev = (
        hc.task("classification", texts=texts, labels=labels, tokenizer=tokenizer, metric="matthews")
        for texts, labels in (planted(2000, 0), planted(200, 1))
    )
    settings = FineTuningSettings("classification", "start", "here", metric="matthews")
    recipe = resolved_recipe(settings, train)
    assert 100 <= recipe.steps <= 150  # 2 x 2000 / 32 = 125
    assert recipe.warmup == round(0.06 * recipe.steps)
    assert recipe.cooldown == recipe.steps - recipe.warmup
    record = fine_tune(
        BertForSequenceClassification(config), tokenizer, train, dev, tmp_path / "out", settings,
        accelerator=Accelerator(cpu=True),
    )  # fmt: skip
    assert record.parts.steps == recipe.steps
    assert record.parts.epochs[-1].measures["accuracy"] > 0.9
    assert record.parts.epochs[-1].measures["matthews"] > 0.8


def test_warm_up_and_batch_are_as_asked_for() -> None:
    data = task(word_tokenizer(32))
    asked = replace(SETTINGS, recipe=replace(FAST, warmup=7, epochs=3))
    recipe = resolved_recipe(asked, data)
    assert (recipe.batch, recipe.chunk, recipe.warmup) == (80, 40, 7)
    assert resolved_recipe(replace(asked, recipe=replace(FAST, warmup=10_000)), data).warmup <= recipe.steps * 5
    assert resolved_recipe(replace(asked, examples=16), data).batch == round(16 * data.lengths[:, 0].mean())


def test_killed_before_the_last_file_the_record_is_there_and_nothing_else_is_left(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """config.json makes a folder a checkpoint: whoever finds it finds the record, too."""

    class Killed(BaseException):
        pass

    usual = Path.replace

    def mortal(self: Path, target: Path) -> Path:
        if target.name == "config.json":
            raise Killed
        return usual(self, target)

    settings = replace(SETTINGS, recipe=replace(FAST, epochs=1))
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", mortal)
        with pytest.raises(Killed):
            tuned(start, out, settings)
    assert (out / "record.json").is_file()
    assert not (out / "config.json").exists()
    assert Record.load(out / "record.json").signature.model == str(out), "the model that it describes"
    assert not (out / "training" / "final").exists(), "a command that finds config.json does not train, nor clean up"
    tuned(start, out, settings)
    assert (out / "config.json").is_file()
    assert not (out / "training" / "final.json").exists()


def test_a_folder_whose_first_run_was_killed_before_it_noted_its_settings_is_begun(start: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "training" / ".settings.json.headcount-dead").mkdir(parents=True)
    tuned(start, out, replace(SETTINGS, recipe=replace(FAST, epochs=1)))
    assert (out / "config.json").is_file()
    assert not list(out.rglob(".*"))
    (tmp_path / "other" / "training" / "notes").mkdir(parents=True)
    with pytest.raises(UsageError, match="holds something else"):
        tuned(start, tmp_path / "other", SETTINGS)
