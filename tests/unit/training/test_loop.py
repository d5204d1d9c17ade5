"""Training: the same model whether interrupted or not, by one process or two; averages; first weights."""

from __future__ import annotations

import fcntl
import json
import random
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from datasets import Dataset
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, MarianMTModel, PegasusForConditionalGeneration

import headcount as hc
import laboratory
from forks import shared_by, started
from headcount import locks
from headcount.checkpoints.chosen_on import read_chosen_on, write_chosen_on
from headcount.checkpoints.companions import load_tokenizer
from headcount.cli.main import main
from headcount.corpora.parallel import Parallel
from headcount.errors import CheckpointError, CorpusError, FolderError, RecordError, UsageError
from headcount.record import Record
from headcount.studies.translation import TranslationSettings, train_translation
from headcount.tasks.overlap import Examples
from headcount.training import loop
from headcount.training.average import average
from headcount.training.log import Log
from headcount.training.run import Watch
from headcount.training.standing import Standing
from headcount.training.transformer import Size
from headcount.training.vitals import saturated


def data() -> Parallel:
    return laboratory.parallel(held_out=10)


def train(out: Path, settings: TranslationSettings = laboratory.SETTINGS, **options: Any) -> Record:
    return train_translation(data(), out, settings, accelerator=Accelerator(cpu=True), **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("uninterrupted") / "model"
    train(out)
    return out


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(one: Path, other: Path) -> bool:
    left, right = weights(one), weights(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_a_run_leaves_a_plain_model(finished: Path) -> None:
    model = hc.load(finished)
    assert len(hc.locate(model).heads) == 3 * 2 * 4
    record = Record.load(finished / "record.json")
    assert [epoch.epoch for epoch in record.parts.epochs] == [1, 2]
    assert record.parts.candidate in record.parts.candidates
    assert {folder.name for folder in (finished / "epochs").iterdir()} == {"001", "002"}
    hc.load(finished / "epochs" / "001")
    lines = [json.loads(line) for line in (finished / "training" / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines if "token_accuracy" in line] == [1, 2]
    assert not list(finished.rglob("*.bin")), "no pickles"
    assert not list(finished.rglob("*.pkl"))


def test_it_learns(finished: Path) -> None:
    losses = [epoch.measures["loss"] for epoch in Record.load(finished / "record.json").parts.epochs]
    assert losses[1] < losses[0] < 5.7  # ln 300: guessing


def test_the_same_run_gives_the_same_weights(finished: Path, tmp_path: Path) -> None:
    """Whatever is kept on the way."""
    train(tmp_path / "again", snapshots=2)
    assert same(finished, tmp_path / "again")
    names = [folder.name for folder in sorted((tmp_path / "again" / "epochs").iterdir())]
    assert names == ["0.25", "0.5", "001", "002"]
    early, half, whole = (tmp_path / "again" / "epochs" / name for name in names[:3])
    assert not same(early, half)
    assert not same(half, whole)


def test_another_seed_gives_other_weights(finished: Path, tmp_path: Path) -> None:
    recipe = replace(laboratory.RECIPE, seed=4, epochs=1)
    train(tmp_path / "other", replace(laboratory.SETTINGS, recipe=recipe))
    assert not same(finished, tmp_path / "other")


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_interruptions_change_nothing(
    finished: Path, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped three times at random steps, states saved at random steps: the same weights and the same log."""
    draw = random.Random(seed)
    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    stops = sorted(draw.sample(range(2, 24), 3))

    def stop(report: Any) -> None:
        if stops and report.step >= stops[0]:
            stops.pop(0)
            raise Interrupted

    out = tmp_path / "model"
    for _ in range(3):
        with pytest.raises(Interrupted):
            train(out, watch=Watch(step=stop), save_seconds=draw.choice([0.0, 0.05, 100.0]))
        assert not (out / "config.json").exists(), "no checkpoint before the end"
    train(out, watch=Watch(step=stop))
    assert same(finished, out)
    steps = [line["step"] for line in Log(out / "training" / "metrics.jsonl").lines() if "rate" in line]
    assert steps == list(range(1, steps[-1] + 1))


def test_interrupted_between_two_lines_of_the_log_it_says_the_same(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line is the mean over the steps since the last one, also over those before the interruption."""
    usual = loop.Loop._step

    def stop(self: loop.Loop, *arguments: Any) -> torch.Tensor:
        if arguments[-1] == 17:
            raise Interrupted
        return usual(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Loop, "_step", stop)
        with pytest.raises(Interrupted):
            train(tmp_path / "model", save_seconds=0.0)
    train(tmp_path / "model")
    logs = [Log(folder / "training" / "metrics.jsonl").lines() for folder in (finished, tmp_path / "model")]
    assert any("rate" in line and line["step"] == loop.LOG_EVERY for line in logs[0])
    whole, resumed = [[{**line, "seconds": None} for line in log] for log in logs]
    assert resumed == whole


def test_an_interruption_does_not_reset_the_scale_of_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fp16 needs a GPU; a scaler on the CPU counts in the same way: the scale doubles every third step."""
    usual = loop.Loop._step

    def scaled() -> Accelerator:
        accelerator = Accelerator(cpu=True)
        accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
        return accelerator

    def stop(self: loop.Loop, *arguments: Any) -> torch.Tensor:
        if arguments[-1] == 8:
            raise Interrupted
        return usual(self, *arguments)

    whole, resumed = scaled(), scaled()
    settings = replace(laboratory.SETTINGS, recipe=replace(laboratory.RECIPE, steps=10, epochs=None))
    train_translation(data(), tmp_path / "whole", settings, accelerator=whole)
    with monkeypatch.context() as patch:
        patch.setattr(loop.Loop, "_step", stop)
        with pytest.raises(Interrupted):
            train_translation(data(), tmp_path / "model", settings, accelerator=scaled(), save_seconds=0.0)
    train_translation(data(), tmp_path / "model", settings, accelerator=resumed)
    assert resumed.scaler.state_dict() == whole.scaler.state_dict()
    assert whole.scaler.get_scale() == 4.0 * 2**3
    assert same(tmp_path / "whole", tmp_path / "model")


def test_a_kill_while_the_end_is_measured_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that ends by its steps, in the middle of an epoch, with a state saved after every step."""
    from headcount.studies import translation

    settings = replace(laboratory.SETTINGS, recipe=replace(laboratory.RECIPE, steps=17, epochs=None))
    whole = train(tmp_path / "whole", settings)
    judge, calls = translation._judge, []

    def killed(*arguments: Any) -> dict[str, float]:
        calls.append(arguments)
        if len(calls) == len(whole.parts.epochs):
            raise Interrupted
        return judge(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(translation, "_judge", killed)
        with pytest.raises(Interrupted):
            train(tmp_path / "killed", settings, save_seconds=0.0)
    again = train(tmp_path / "killed", settings)
    assert [epoch.epoch for epoch in again.parts.epochs] == [epoch.epoch for epoch in whole.parts.epochs]
    assert same(tmp_path / "whole", tmp_path / "killed")


def test_other_data_of_the_same_name_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "model"
    with pytest.raises(Interrupted):
        train(out, watch=Watch(step=_stop), save_seconds=0.0)
    pairs = data()
    fewer = replace(pairs, splits={**pairs.splits, "train": pairs["train"].select(range(290))})
    with pytest.raises(UsageError, match="train: 300 there, 290 now"):
        train_translation(fewer, out, laboratory.SETTINGS, accelerator=Accelerator(cpu=True))
    for split in ("train", "dev"):
        texts = pairs[split][:]
        texts["target"][0] += " changed"
        changed = replace(pairs, splits={**pairs.splits, split: Dataset.from_dict(texts)})
        with pytest.raises(UsageError, match=f"other settings \\(fingerprint of the text of {split}: "):
            train_translation(changed, out, laboratory.SETTINGS, accelerator=Accelerator(cpu=True))
    assert (out / "training" / "state.safetensors").is_file()


def test_data_that_cannot_be_read_begin_no_folder(tmp_path: Path) -> None:
    only_train = replace(data(), splits={"train": data()["train"]})
    with pytest.raises(CorpusError, match="needs the splits train and dev; the data has train"):
        train_translation(only_train, tmp_path / "model", laboratory.SETTINGS, accelerator=Accelerator(cpu=True))
    assert not (tmp_path / "model").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_kill_at_random_moments_changes_nothing(finished: Path, tmp_path: Path) -> None:
    draw, out = random.Random(time.time_ns()), tmp_path / "killed"
    state = out / "training" / "state.safetensors"
    for _ in range(3):
        before = state.stat().st_mtime_ns if state.exists() else 0
        process = started(lambda: train(out, save_seconds=0.0))
        while process.is_alive() and (not state.exists() or state.stat().st_mtime_ns == before):
            time.sleep(0.01)  # until it has come further than before
        time.sleep(draw.uniform(0, 0.3))
        process.kill()
        process.join()
    train(out)
    assert same(finished, out)


def test_two_processes_learn_what_one_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same global batch, dropout off: the same losses and weights, up to rounding."""
    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    texts = tmp_path / "data"
    texts.mkdir()
    for split, pairs in data().splits.items():
        (texts / f"{split}.en").write_text("\n".join(pairs["source"]) + "\n")
        (texts / f"{split}.xx").write_text("\n".join(pairs["target"]) + "\n")
    size = "--encoder-layers 1 --decoder-layers 1 --heads 2 --width 16 --inner 32 --vocabulary 200"
    recipe = "--batch 300 --chunk 100 --steps 6 --cooldown 0 --warmup 20 --clip 1 --seed 1"
    options = f"{size} {recipe} --dropout 0 --attention-dropout 0".split()
    asked = ["train", "--data", str(texts), "--languages", "en,xx", "--preset", "tiny", *options]

    def learn(folder: str) -> None:
        main([*asked, "--out", str(tmp_path / folder)], standalone_mode=False)

    learn("1")
    shared_by(2, lambda: learn("2"))
    logs = {folder: Log(tmp_path / folder / "training" / "metrics.jsonl").lines() for folder in ("1", "2")}
    losses = {folder: [line["loss"] for line in lines if "rate" in line] for folder, lines in logs.items()}
    assert len(losses["1"]) == 6
    assert losses["1"] == pytest.approx(losses["2"], rel=1e-6)
    states = [load_file(tmp_path / folder / "training" / "state.safetensors") for folder in ("1", "2")]
    for name, one in states[0].items():  # weights, and the moments of their gradients
        if not name.endswith("k_proj.bias"):  # softmax ignores it: its gradient is rounding, which Adam blows up
            torch.testing.assert_close(states[1][name], one, rtol=1e-3, atol=1e-5)
    assert hc.load(tmp_path / "2")


def test_other_settings_are_refused(finished: Path) -> None:
    with pytest.raises(UsageError, match="vocabulary: 300 there, 400 now"):
        train(finished, replace(laboratory.SETTINGS, vocabulary=400))


def test_sentences_of_too_many_tokens_are_left_out_and_counted(tmp_path: Path) -> None:
    recipe = replace(laboratory.RECIPE, epochs=1, average=1)
    record = train(tmp_path / "model", replace(laboratory.SETTINGS, recipe=recipe, max_length=20))
    left_out = record.parts.skipped["train"]["too many tokens"]
    tokenizer = load_tokenizer(str(tmp_path / "model"))
    pairs = data()["train"]
    source, target = (
        tokenizer(list(pairs["source"]))["input_ids"],
        tokenizer(text_target=list(pairs["target"]))["input_ids"],
    )
    assert left_out == sum(max(len(a), len(b)) > 20 for a, b in zip(source, target, strict=True)) > 0
    assert record.parts.texts == {"train": len(pairs) - left_out, "dev": len(data()["dev"])}


def test_settings_that_fail_may_be_changed(tmp_path: Path) -> None:
    out = tmp_path / "model"
    with pytest.raises(CorpusError, match="different characters"):
        train(out, replace(laboratory.SETTINGS, vocabulary=10))
    with pytest.raises(CorpusError, match="at most 2 tokens"):
        train(out, replace(laboratory.SETTINGS, max_length=2))
    train(out, replace(laboratory.SETTINGS, recipe=replace(laboratory.RECIPE, epochs=1)))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="something else"):
        train(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_folder_has_one_run_at_a_time(tmp_path: Path) -> None:
    out = tmp_path / "model"
    out.mkdir()
    with open(out / locks.FOLDER_LOCK, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(FolderError, match="model is in use by another process"):
            train(out)
    assert [path.name for path in out.iterdir()] == [locks.FOLDER_LOCK]


def test_settings_that_were_cut_off_are_named(tmp_path: Path) -> None:
    settings = tmp_path / "training" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"data": "gram')
    with pytest.raises(RecordError, match=r"settings.json is not JSON"):
        train(tmp_path)


def test_a_damaged_state_is_said_to_be(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    with pytest.raises(Interrupted):
        train(out, watch=Watch(step=_stop), save_seconds=0.0)
    (out / "training" / "state.safetensors").write_bytes(b"half")
    with pytest.raises(CheckpointError, match="not a training state"):
        train(out)


def _stop(report: Any) -> None:
    raise Interrupted


def test_patience_and_ends() -> None:
    recipe = replace(laboratory.RECIPE, epochs=None, patience=2)
    epochs = [{"loss": loss} for loss in (3.0, 2.0, 2.5)]
    assert not Standing(epoch=3, epochs=epochs).finished(recipe)
    assert Standing(epoch=4, epochs=[*epochs, {"loss": 2.1}]).finished(recipe)
    assert Standing(epoch=4, epochs=[*epochs, {"loss": 2.1}]).best("loss") == 2
    assert Standing(step=7).finished(replace(laboratory.RECIPE, steps=7))


def test_average_is_the_mean(finished: Path) -> None:
    folders = [finished / "epochs" / name for name in ("001", "002")]
    found = average(folders).state_dict()
    one, two = (hc.load(folder).state_dict() for folder in folders)
    for name, value in found.items():
        torch.testing.assert_close(value, (one[name] + two[name]) / 2, rtol=0, atol=1e-7)
    assert torch.equal(
        average(folders[:1]).state_dict()["model.encoder.embed_tokens.weight"], one["model.encoder.embed_tokens.weight"]
    )


def test_averages_of_different_models_are_refused(finished: Path, tmp_path: Path) -> None:
    other = laboratory.model(laboratory.vocabulary(tmp_path / "v"), width=16)
    hc.save(other, tmp_path / "other")
    with pytest.raises(UsageError, match="have different shapes"):
        average([finished, tmp_path / "other"])
    with pytest.raises(UsageError, match="no checkpoints"):
        average([])


def test_a_model_like_a_pruned_one_has_its_heads_and_new_weights(finished: Path, tmp_path: Path) -> None:
    """The control of pruning: the same heads in every layer, as large as ever, trained from nothing."""
    model = hc.load(finished)
    small = hc.remove(model, hc.locate(model).mask(off=["encoder.0.*", "encoder.1.1", "cross.1.0", "cross.1.3"]))
    hc.save(small, tmp_path / "small", tokenizer=load_tokenizer(str(finished)))
    write_chosen_on(tmp_path / "small", [Examples("dev", "data", ("one", "two"))])
    settings = replace(laboratory.SETTINGS, recipe=replace(laboratory.RECIPE, epochs=1), like=str(tmp_path / "small"))
    train(tmp_path / "control", settings)
    control = hc.load(tmp_path / "control")
    assert hc.locate(control).heads == hc.locate(small).heads
    assert [site.head_dim for site in hc.locate(control)] == [8] * 6
    mine, theirs = control.state_dict(), small.state_dict()
    assert {name: value.shape for name, value in mine.items()} == {n: value.shape for n, value in theirs.items()}
    name = "model.encoder.layers.1.self_attn.q_proj.weight"
    assert not torch.allclose(mine[name], theirs[name], atol=0.1)
    same_words = (tmp_path / "control" / "vocab.json").read_text() == (tmp_path / "small" / "vocab.json").read_text()
    assert same_words
    assert read_chosen_on(str(tmp_path / "control")) == read_chosen_on(str(tmp_path / "small"))


def test_killed_while_the_vocabulary_of_another_model_is_copied_there_is_none(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def half(self: object, folder: Path) -> None:
        (Path(folder) / "vocab.json").write_text("{")
        raise Killed

    monkeypatch.setattr("transformers.MarianTokenizer.save_pretrained", half)
    settings = replace(laboratory.SETTINGS, like=str(finished))
    with pytest.raises(Killed):
        train(tmp_path / "control", settings)
    assert not (tmp_path / "control" / "training" / "vocabulary").exists()


def test_first_weights_of_pre_norm(tmp_path: Path) -> None:
    """Words quieter than the sinusoids of positions, padding silent, Glorot matrices."""
    model = laboratory.model(laboratory.vocabulary(tmp_path / "v"))
    assert isinstance(model, PegasusForConditionalGeneration)
    embedding = model.model.encoder.embed_tokens
    assert float(embedding.weight[3:].detach().std()) * model.config.d_model**0.5 == pytest.approx(0.5, abs=0.03)
    assert not embedding.weight[embedding.padding_idx].any()
    assert model.lm_head.weight is model.model.decoder.embed_tokens.weight is embedding.weight
    glorot = (6 / (32 + 32)) ** 0.5
    for name in ("q_proj", "out_proj"):
        weight = model.model.encoder.layers[0].self_attn.get_submodule(name).weight.detach()
        assert float(weight.abs().max()) == pytest.approx(glorot, rel=0.05)


def test_first_weights_of_post_norm(tmp_path: Path) -> None:
    """Words as loud as positions, padding silent, branches small: and not one weight left at Marian's own."""
    model = laboratory.model(laboratory.vocabulary(tmp_path / "v", shared=False), norm="post")
    assert isinstance(model, MarianMTModel)
    embedding = model.model.encoder.embed_tokens
    assert float(embedding.weight[3:].detach().std()) * model.config.d_model**0.5 == pytest.approx(1.0, abs=0.05)
    assert not embedding.weight[embedding.padding_idx].any()
    assert model.lm_head.weight is model.model.decoder.embed_tokens.weight
    layer = model.model.encoder.layers[0]
    glorot = (6 / (32 + 32)) ** 0.5
    assert float(layer.self_attn.q_proj.weight.detach().abs().max()) == pytest.approx(glorot * 2**-0.5, rel=0.05)
    assert float(layer.self_attn.out_proj.weight.detach().abs().max()) == pytest.approx(glorot * 4**-0.5, rel=0.05)


def test_pre_norm_needs_one_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one vocabulary for both sides"):
        laboratory.model(laboratory.vocabulary(tmp_path / "v", shared=False))


def test_plain_transformers_reads_the_folder(finished: Path) -> None:
    tokenizer, model = AutoTokenizer.from_pretrained(finished), AutoModelForSeq2SeqLM.from_pretrained(finished)
    assert isinstance(model, PegasusForConditionalGeneration)
    tokens = model.generate(**tokenizer(["the king sees a stone"], return_tensors="pt"), max_new_tokens=4)
    assert isinstance(tokenizer.decode(tokens[0], skip_special_tokens=True), str)


def test_the_log_has_the_vitals_of_every_encoder_layer(finished: Path) -> None:
    epochs = [line for line in Log(finished / "training" / "metrics.jsonl").lines() if "vitals" in line]
    assert len(epochs) == laboratory.RECIPE.epochs
    for line in epochs:
        assert set(line["vitals"]) == {"encoder.0", "encoder.1"}
        assert not saturated(line["vitals"])


@pytest.mark.parametrize(
    "wrong", [{"heads": 3}, {"width": 0}, {"dropout": 1.0}, {"attention_dropout": -0.1}, {"norm": "middle"}]
)
def test_sizes_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Size(**{"encoder_layers": 1, "decoder_layers": 1, "heads": 4, "width": 32, "inner": 8, "dropout": 0.0, **wrong})


def test_log_forgets_what_came_after(tmp_path: Path) -> None:
    log = Log(tmp_path / "metrics.jsonl")
    for step in (1, 2, 3):
        log.add(step=step, epoch=1, rate=0.1)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')
    assert [line["step"] for line in log.lines()] == [1, 2, 3]
    log.rewind(2, 0)
    assert [line["step"] for line in log.lines()] == [1, 2]


def test_an_epoch_that_was_measured_but_not_saved_has_one_line(tmp_path: Path) -> None:
    """A state was written after its last step, and the process killed before the next one."""
    log = Log(tmp_path / "metrics.jsonl")
    for epoch in (1, 2):
        log.add(step=3 * epoch, epoch=epoch, rate=0.1)
        log.add(step=3 * epoch, epoch=epoch, loss=2.0)
    log.rewind(6, 1)
    assert [(line["step"], "rate" in line) for line in log.lines()] == [(3, True), (3, False), (6, True)]
    log.rewind(6, 2)
    assert len(log.lines()) == 3


def test_a_state_of_another_shape(finished: Path, tmp_path: Path) -> None:
    from headcount.training.state import read_state

    save_file({"model.x": torch.zeros(1)}, tmp_path / "s", metadata={"progress": "{}"})
    model = hc.load(finished)
    with pytest.raises(CheckpointError, match="other shapes"):
        read_state(tmp_path / "s", model, torch.optim.Adam(model.parameters()))
