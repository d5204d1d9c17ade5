"""Whole studies of several models: one folder each, shared over processes, and one record."""

from __future__ import annotations

import fcntl
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
from headcount import locks
from headcount.claims.pool import pool
from headcount.cli.main import main
from headcount.corpora.source import Source
from headcount.errors import UsageError
from headcount.record import Record
from headcount.studies import pool as studies_pool
from headcount.studies.pool import folder_names, study_pool
from headcount.studies.study_settings import StudySettings, trained_on
from subjects import training
from tokens import sentences, word_tokenizer


@pytest.fixture
def study(tmp_path: Path) -> list[str]:
    """The command that studies two models, but for its folder."""
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    for seed in range(2):
        torch.manual_seed(seed)
        model = BertForSequenceClassification(BertConfig(vocab_size=99, **size))
        hc.save(model, tmp_path / f"m-{seed}", tokenizer=word_tokenizer())
    for split in ("dev", "test"):
        rows = [f"{len(text) % 2}\t{text}" for text in sentences(48, seed=len(split))]  # enough right answers for M1
        (tmp_path / f"{split}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
    models = [str(tmp_path / "m-0"), str(tmp_path / "m-1")]
    options = ["--task", "classification", "--data", str(tmp_path), "--parts", "ablation", "--format", "svg"]
    return ["study", "michel2019", *models, *options, "--out", str(tmp_path / "out")]


def test_several_models_are_studied_and_pooled(study: list[str], tmp_path: Path) -> None:
    """The second model is another process's at first; the same command later has both."""
    out = tmp_path / "out"
    (out / "m-1").mkdir(parents=True)
    with open(out / "m-1" / locks.FOLDER_LOCK, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        first = CliRunner().invoke(main, study)
    assert first.exit_code == 0, first.output
    assert "1 model (m-0): 9 claims of the papers" in " ".join(first.output.split())
    both = CliRunner().invoke(main, study)
    assert both.exit_code == 0, both.output
    assert "2 models (m-0, m-1): 9 claims of the papers" in " ".join(both.output.split())
    record = Record.load(out / "record.json")
    assert {verdict.models for verdict in record.parts.ledger.parts.verdicts if verdict.number == "M1"} == {2}
    assert (out / "m-1" / "parts" / "ablation.json").is_file()
    assert (out / "figures" / "ablation" / "ablation-map.svg").is_file()
    report = CliRunner().invoke(main, ["report", str(out), "--plain", "--short"])
    drawn = CliRunner().invoke(main, ["figure", "all", str(out), "--format", "svg", "--out", str(tmp_path / "figures")])
    assert "ablation-map.svg" in drawn.output, drawn.output
    assert report.output.count("9 claims of the papers") == 1


def test_a_study_that_ends_while_the_others_are_pooled_is_pooled_too(
    study: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert CliRunner().invoke(main, study).exit_code == 0
    late = out / "m-1" / "record.json"
    late.rename(out / "late.json")

    def slow_pool(studies: list[Record]) -> Record:
        if not late.is_file():  # the process of the other model ends, and has written its record of both
            (out / "late.json").rename(late)
        return pool(studies)

    monkeypatch.setattr(studies_pool, "pool", slow_pool)
    record = studies_pool._save_pool([out / "m-0", out / "m-1"], out)
    assert list(record.parts.studies) == study[2:4]
    assert Record.load(out / "record.json").to_json() == record.to_json()


def test_other_models_join_those_that_are_pooled_already(study: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert CliRunner().invoke(main, study).exit_code == 0
    for number in (2, 3):
        shutil.copytree(tmp_path / "m-0", tmp_path / f"m-{number}")
    new = [str(tmp_path / "m-2"), str(tmp_path / "m-3")]
    done = CliRunner().invoke(main, [*study[:2], *new, *study[4:]])
    assert done.exit_code == 0, done.output
    assert "under way" not in done.output
    assert set(Record.load(out / "record.json").parts.studies) == {*study[2:4], *new}
    shutil.rmtree(out / "m-0")  # what is not there is not pooled
    assert CliRunner().invoke(main, [*study[:2], *new, *study[4:]]).exit_code == 0
    assert set(Record.load(out / "record.json").parts.studies) == {study[3], *new}
    other = CliRunner().invoke(main, [*study[:2], *new, *study[4:], "--batch-size", "3"])
    assert "m-1 with other settings (batch_size: 16 there, 3 now)" in " ".join(other.output.split())


def test_wrong_pools_are_refused(study: list[str], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for first, second in (("m", "m"), (f"{tmp_path}/folder", f"{tmp_path}/./folder/")):
        settings = [StudySettings.read({"model": model, "source": {"data": "grammar"}}) for model in (first, second)]
        with pytest.raises(UsageError, match="listed twice"):
            study_pool("michel2019", settings, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_folders_have_the_names_of_models() -> None:
    assert folder_names(["runs/tiny-0/", "runs/tiny-1", "org/m", "other/m"]) == ["tiny-0", "tiny-1", "m-3", "m-4"]
    assert folder_names(["a/x", "b/x", "x-1"]) == ["x-1-1", "x-2", "x-1"]
    for models in (["x-1", "a/x", "b/x"], ["a/x", "b/x", "x-1", "x-1-1"], ["a/x-1", "b/x-1", "a/x", "b/x"]):
        assert len(set(folder_names(models))) == len(models)


def test_a_model_keeps_its_folder_beside_others_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third model of the same name gave the first a new folder, in which it was studied again."""
    studied: list[tuple[str, str]] = []

    def begin(_: str, settings: StudySettings, folder: Path, **__: Any) -> None:
        studied.append((settings.model, folder.name))
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text(json.dumps({"model": settings.model}))

    monkeypatch.setattr(studies_pool, "whole_study", begin)
    monkeypatch.setattr(studies_pool, "_save_pool", lambda *_: None)
    for models in (["a/x", "y"], ["a/x", "y", "b/x"], ["b/x", "c/x"], ["d/y"], ["b/x", "a/x"]):
        study_pool("all", [StudySettings(name, Source("grammar", "dev")) for name in models], tmp_path)
    assert studied[:5] == [("a/x", "x"), ("y", "y"), ("a/x", "x"), ("y", "y"), ("b/x", "x-3")]
    folders: dict[str, set[str]] = {}
    for name, folder in studied:
        folders.setdefault(name, set()).add(folder)
    assert all(len(names) == 1 for names in folders.values()), folders
    assert len(set.union(*folders.values())) == 5, "no two models share a folder"
    (tmp_path / "x" / "settings.json").write_text("[")
    study_pool("all", [StudySettings("y", Source("grammar", "dev"))], tmp_path)
    assert studied[-1] == ("y", "y")


def test_a_model_of_the_embedded_corpus_is_studied_on_it(tmp_path: Path) -> None:
    record = training()
    record.save(tmp_path / "record.json")
    assert trained_on(str(tmp_path)) == ""
    record.signature.arguments["data"] = "grammar:bare"
    record.save(tmp_path / "record.json")
    assert trained_on(str(tmp_path)) == "grammar:bare"
    done = CliRunner().invoke(main, ["study", "voita2019", str(tmp_path), "--show"])
    assert 'data = "grammar:bare"' in done.output
    config = tmp_path / "study.toml"
    config.write_text(f"model = '{tmp_path}'\n")
    for arguments in ([], [str(tmp_path)]):
        done = CliRunner().invoke(main, ["study", "voita2019", *arguments, "--config", str(config), "--show"])
        assert 'data = "grammar:bare"' in done.output, done.output
    assert trained_on(str(tmp_path / "nowhere")) == ""
