"""A checkpoint that is replaced: nothing of the old model stays beside the new one, all files of the user do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from torch import nn

import headcount as hc
from headcount.checkpoints.card import is_card
from headcount.checkpoints.replaced import move_in
from headcount.cli.main import main
from headcount.errors import UsageError
from headcount.pruning.run import run
from headcount.training.loop import Loop
from tokens import sentences, word_tokenizer

OWN = {
    "notes.txt": "mine",
    "dict.txt": "mine",
    "adapters.py": "mine",
    "probe.safetensors": "mine",
    "results.json": "{}",
}


def prune(model: Path, out: Path, *options: str) -> Path:
    done = CliRunner().invoke(main, ["prune", str(model), "--remove", "encoder.0.1", "--out", str(out), *options])
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture
def first(bert: nn.Module, tmp_path: Path) -> Path:
    """The folder of a model that was pruned from one for sentence-transformers, with files of the user."""
    source = hc.save(bert, tmp_path / "first", tokenizer=word_tokenizer())
    (source / "modules.json").write_text(json.dumps([{"path": ""}, {"path": "1_Pooling"}]))
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling" / "config.json").write_text("{}")
    out = prune(source, tmp_path / "out")
    for name, text in OWN.items():
        (out / name).write_text(text)
    return out


def own_files(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in OWN}


@pytest.mark.parametrize("vocabulary", ["vocab.txt", None])
def test_pruning_keeps_no_tokenizer_and_module_of_the_model_that_is_replaced(
    first: Path, bert: nn.Module, tmp_path: Path, vocabulary: str | None
) -> None:
    second = hc.save(bert, tmp_path / "second")
    if vocabulary:
        (second / vocabulary).write_text("[PAD]\n[UNK]\nword\n")
    alone = prune(second, tmp_path / "alone")
    assert (first / "1_Pooling").is_dir()
    prune(second, first, "--overwrite")
    names = {path.name for path in alone.iterdir()}
    assert {path.name for path in first.iterdir()} == {*names, *OWN}
    assert own_files(first) == OWN


def test_saving_keeps_nothing_that_headcount_wrote_about_the_model_that_is_replaced(
    first: Path, bert: nn.Module
) -> None:
    assert {"record.json", "README.md", "chosen_on.json"} <= {path.name for path in first.iterdir()}
    hc.save(bert, first, overwrite=True)
    kept = {path.name for path in first.iterdir()} - OWN.keys()
    assert not kept & {"record.json", "README.md", "chosen_on.json"}
    assert {"tokenizer.json", "modules.json", "1_Pooling"} <= kept, "weights alone were saved"
    assert own_files(first) == OWN
    hc.save(bert, first, tokenizer=word_tokenizer(), overwrite=True)
    assert not (first / "1_Pooling").exists()
    assert (first / "tokenizer.json").is_file()


def test_a_readme_and_a_measurement_of_the_user_stay(first: Path, bert: nn.Module) -> None:
    (first / "README.md").write_text("---\ntags: [pruned]\n---\n# My model\n")
    record = json.loads((first / "record.json").read_text())
    (first / "record.json").write_text(json.dumps({**record, "study": "mine"}))
    hc.save(bert, first, overwrite=True)
    assert "# My model" in (first / "README.md").read_text()
    assert (first / "record.json").is_file()


def test_pruning_again_keeps_the_readme_of_the_user(first: Path, tmp_path: Path) -> None:
    (first / "README.md").write_text("# My model\n")
    for _ in range(2):  # the second card replaces the first
        command = ["prune", str(tmp_path / "first"), "--remove", "encoder.0.2", "--out", str(first), "--overwrite"]
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
        assert "Your README.md stays; the model card is MODEL_CARD.md." in done.output
        assert (first / "README.md").read_text() == "# My model\n"
        assert "`encoder.0.2`" in (first / "MODEL_CARD.md").read_text()
        assert not list(first.glob("*.old"))
    assert own_files(first) == OWN


def test_a_record_of_the_user_is_refused_before_any_work(first: Path, tmp_path: Path) -> None:
    (first / "record.json").write_text('{"mine": 1}')
    command = ["prune", str(tmp_path / "nowhere"), "--remove", "encoder.0.2", "--out", str(first), "--overwrite"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1
    assert "record.json is not the record of the model beside it" in " ".join(done.output.split())
    assert (first / "record.json").read_text() == '{"mine": 1}'


def test_a_training_run_is_not_replaced(first: Path, bert: nn.Module) -> None:
    """The run, repeated, would take the saved model for its own."""
    (first / "training").mkdir()
    (first / "training" / "settings.json").write_text("{}")
    with pytest.raises(UsageError, match="out is the folder of a training run"):
        hc.save(bert, first, overwrite=True)
    assert (first / "record.json").is_file()


def test_a_model_replaces_an_export_with_all_its_files(llama: nn.Module, bert: nn.Module, tmp_path: Path) -> None:
    out = tmp_path / "out"
    small = hc.remove(llama, hc.locate(llama).mask(off=["decoder.0.1"]), verify=False)
    hc.export(small, "vllm", out, check=False)
    (out / "notes.txt").write_text("mine")
    hc.save(bert, out, overwrite=True)
    assert {path.name for path in out.iterdir()} == {"config.json", "model.safetensors", "notes.txt"}


def test_files_that_the_user_writes_while_a_model_is_trained_stay(
    bert: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = hc.save(bert, tmp_path / "model", tokenizer=word_tokenizer()), tmp_path / "out"
    (tmp_path / "train.tsv").write_text(
        "text\tlabel\n" + "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(sentences(8)))
    )
    own = {"README.md": "my lab notes", "MODEL_CARD.md": "my card", "record.json": "{}"}
    take = Loop.run

    def writing(loop: Loop) -> Any:
        for name, text in own.items():
            (out / name).write_text(text)
        return take(loop)

    monkeypatch.setattr(Loop, "run", writing)
    given = ["--tune", "2", "--task", "classification", "--data", str(tmp_path / "train.tsv")]
    prune(source, out, *given)
    assert {name: (out / name).read_text() for name in ("README.md", "MODEL_CARD.md.old", "record.json.old")} == {
        "README.md": own["README.md"], "MODEL_CARD.md.old": own["MODEL_CARD.md"], "record.json.old": own["record.json"],
    }  # fmt: skip
    assert is_card(out / "MODEL_CARD.md")
    assert json.loads((out / "record.json").read_text())["study"] == "prune"
    assert len(hc.locate(hc.load(out)).heads) == 11


def test_files_that_the_user_writes_while_heads_are_chosen_stay(
    bert: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model was refused when it was finished."""
    source, out = hc.save(bert, tmp_path / "model", tokenizer=word_tokenizer()), tmp_path / "out"
    own = {"README.md": "my lab notes", "record.json": "{}", "notes.txt": "mine", "config.json": "[]"}

    def writing(*arguments: Any, **options: Any) -> Any:
        for name, text in own.items():
            (out / name).write_text(text)
        return run(*arguments, **options)

    monkeypatch.setattr("headcount.pruning.folder.run", writing)
    prune(source, out)
    kept = {name: (out / name).read_text() for name in ("README.md", "record.json.old", "notes.txt", "config.json.old")}
    assert kept == {name if name in kept else f"{name}.old": text for name, text in own.items()}
    assert is_card(out / "MODEL_CARD.md")
    assert json.loads((out / "record.json").read_text())["study"] == "prune"
    assert len(hc.locate(hc.load(out)).heads) == 11


def test_a_killed_move_into_a_folder_is_repeated(tmp_path: Path) -> None:
    """What it had moved already is of the same model: nothing of it is taken for the user's."""
    for attempt in range(2):
        fresh = tmp_path / f"fresh{attempt}"
        (fresh / "1_Pooling").mkdir(parents=True)
        for name in ("1_Pooling/config.json", "modules.json", "model.safetensors", "adapters.py"):
            (fresh / name).write_text("{}")
        (fresh / "modules.json").write_text(json.dumps([{"path": "1_Pooling"}]))
        (tmp_path / "out").mkdir(exist_ok=True)
        move_in(fresh, tmp_path / "out")
    names = {"1_Pooling", "modules.json", "model.safetensors", "adapters.py"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
