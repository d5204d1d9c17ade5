"""Commands on one file of parallel text: its name is not that of a split, and half of it is held out where needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import headcount as hc
import laboratory

_PRUNING = ["--choose", "gradient", "--keep", "50%"]


def run(*arguments: str) -> Result:
    from headcount.cli.main import main

    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation model, and 16 pairs in one file."""
    place = tmp_path_factory.mktemp("pairs")
    tokenizer = laboratory.vocabulary(place / "v")
    hc.save(laboratory.model(tokenizer), place / "model", tokenizer=tokenizer)
    dev = laboratory.parallel()["dev"]
    rows = [f"{source}\t{target}\n" for source, target in zip(dev["source"][:16], dev["target"][:16], strict=True)]
    (place / "pairs.tsv").write_text("".join(["source\ttarget\n", *rows]), encoding="utf-8")
    return place


def data(folder: Path) -> list[str]:
    return ["--task", "translation", "--metric", "loss", "--data", str(folder / "pairs.tsv")]


@pytest.mark.parametrize("command", ["evaluate", "score", "ablate", "roles", "study examples"])
def test_the_whole_file_is_read(folder: Path, tmp_path: Path, command: str) -> None:
    texts = data(folder)[-2:] if command in ("roles", "study examples") else data(folder)
    texts = [texts[0], texts[1], *texts[4:]] if command == "evaluate" else texts  # BLEU, loss and more
    done = run(*command.split(), str(folder / "model"), *texts, "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    if command == "evaluate":
        record = hc.Record.load(tmp_path / "out" / "record.json")
        assert record.parts.examples == 16
        assert record.signature.arguments["data"] == str(folder / "pairs.tsv")


def test_pruning_holds_out_half_of_the_file(folder: Path, tmp_path: Path) -> None:
    done = run("prune", str(folder / "model"), *_PRUNING, *data(folder), "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert "of the other half of pairs.tsv, held out" in " ".join(done.output.split())


def test_a_split_that_is_named_must_exist(folder: Path) -> None:
    done = run("score", str(folder / "model"), *data(folder), "--split", "dev")
    assert done.exit_code == 2
    assert "is a single file, which has no splits" in " ".join(done.output.split())
    assert run("score", str(folder / "model"), *data(folder), "--split", "pairs").exit_code == 0


def test_a_study_reads_the_file(folder: Path) -> None:
    shown = run("study", "michel2019", str(folder / "model"), *data(folder)[-2:], "--show")
    assert shown.exit_code == 0, shown.output
    assert "split = " not in shown.output.partition("[source]")[2]
