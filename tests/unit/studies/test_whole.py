"""Whole studies: every part once, interrupted or not, with what is missing and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
from headcount.errors import UnknownName, UsageError
from headcount.record import Record
from headcount.studies import whole
from headcount.studies.whole import Settings, whole_study
from tokens import sentences, word_tokenizer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    hc.save(
        BertForSequenceClassification(BertConfig(vocab_size=99, **size)), tmp_path / "m", tokenizer=word_tokenizer()
    )
    for split in ("dev", "test"):
        rows = [f"{len(text) % 2}\t{text}" for text in sentences(12, seed=len(split))]
        (tmp_path / f"{split}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
    return Settings(
        model=str(tmp_path / "m"), data=str(tmp_path), task="classification", other="dev", random=1, step=0.5,
        orders=("gradient",), batches=(1,), lengths=(8,), repeats=1,
    )  # fmt: skip


def test_every_part_is_there_or_says_why(settings: Settings, tmp_path: Path) -> None:
    seen: list[int] = []
    refresh = lambda record: seen.append(len(record.parts["records"]))  # noqa: E731
    record = whole_study("michel2019", settings, tmp_path / "out", refresh=refresh)
    assert set(record.parts["records"]) == {"gradient", "ablation", "curves", "speed"}
    assert "no checkpoints named by epoch" in record.parts["missing"]["dynamics"]
    assert seen == sorted(seen)
    assert len(seen) == 5
    assert Record.load(tmp_path / "out" / "record.json").parts == record.parts
    assert {exhibit["paper"] for exhibit in record.parts["exhibits"]} == {"michel2019"}
    assert "other" in record.parts["records"]["ablation"]["parts"]


def test_finished_parts_are_not_run_again(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(subject: whole.Subject) -> Record:
        raise KeyboardInterrupt

    once = whole_study("michel2019", settings, tmp_path / "once", parts=["gradient", "ablation", "curves"])
    monkeypatch.setitem(whole.PARTS, "curves", interrupted)
    with pytest.raises(KeyboardInterrupt):
        whole_study("michel2019", settings, tmp_path / "twice", parts=["gradient", "ablation", "curves"])
    monkeypatch.undo()
    monkeypatch.setitem(whole.PARTS, "ablation", interrupted)
    twice = whole_study("michel2019", settings, tmp_path / "twice", parts=["gradient", "ablation", "curves"])
    for part, found in once.parts["records"].items():
        assert twice.parts["records"][part]["parts"] == found["parts"]


def test_other_settings_need_another_folder(settings: Settings, tmp_path: Path) -> None:
    whole_study("michel2019", settings, tmp_path / "out", parts=["gradient"])
    with pytest.raises(UsageError, match=r"step: 0.5 there, 0.25 now"):
        whole_study("michel2019", replace(settings, step=0.25), tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with pytest.raises(UsageError, match="holds something else"):
        whole_study("michel2019", settings, tmp_path / "full")


def test_another_model_under_the_same_name_needs_another_folder(settings: Settings, tmp_path: Path) -> None:
    whole_study("michel2019", settings, tmp_path / "out", parts=["gradient"])
    model = hc.load(settings.model)
    with torch.no_grad():
        model.classifier.bias += 1
    hc.save(model, settings.model, tokenizer=word_tokenizer(), overwrite=True)
    with pytest.raises(UsageError, match=r"weights: .* there, .* now"):
        whole_study("michel2019", settings, tmp_path / "out", parts=["gradient", "ablation"])


def test_settings_are_read_and_written(settings: Settings) -> None:
    import tomllib

    assert Settings.read(tomllib.loads(settings.to_toml())) == settings
    with pytest.raises(UnknownName, match="sentences"):
        Settings.read({"model": "m", "data": "d", "sentense": 3})
    with pytest.raises(UsageError, match="needs a data"):
        Settings.read({"model": "m"})
    with pytest.raises(UnknownName, match="ablation"):
        whole_study("michel2019", settings, Path("nowhere"), parts=["ablations"])
    assert not Path("nowhere").exists()
