"""The demo: every part on one model, the page, the smaller model; gone on with, not begun again."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headcount as hc
import laboratory
from headcount import journal
from headcount.cli.main import main
from headcount.corpora.source import Source
from headcount.record import Record
from headcount.record.codec import encode
from headcount.studies import demo, parts, whole
from headcount.studies.subject import StudySubject

SMALL = {
    "source": Source("grammar", "dev", limit=6), "train_limit": 60, "followed": 2, "random": 1,
    "step": 0.5, "orders": ("gradient",), "batches": (1,),
    "lengths": (8,), "repeats": 1, "keep": (3,), "ways": ("l0", "random"), "gate_steps": 2, "tune_steps": 2,
}  # fmt: skip


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that is there already, with two epochs, and a study of the smallest size."""
    out = tmp_path / "demo"
    tokenizer = laboratory.vocabulary(tmp_path / "vocabulary")
    for folder in (out / "model", out / "model" / "epochs" / "001", out / "model" / "epochs" / "002"):
        hc.save(laboratory.model(tokenizer), folder, tokenizer=tokenizer, overwrite=True)
    usual = demo.study
    monkeypatch.setattr(demo, "study", lambda model, quick: replace(usual(model, quick=quick), **SMALL))
    return out


@pytest.mark.slow  # a minute and a half: the training data are made several times
def test_the_demo_ends_with_a_page_and_a_smaller_model(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(main, ["demo", "--quick", "--out", str(small)])
    assert done.exit_code == 0, done.output
    assert "report.html in a browser" in done.output
    record = Record.load(small / "study" / "record.json")
    assert not record.parts.missing
    assert {*whole.PAPERS["all"]} <= set(record.parts.records)
    page = (small / "report.html").read_text(encoding="utf-8")
    assert "headcount demo" in page
    assert len(hc.locate(hc.load(small / "smaller")).heads) == round(0.6 * 24)
    smaller = Record.load(small / "smaller" / "record.json")
    assert smaller.signature.model == str(small / "model"), "a report shows it with the study of the model"
    assert smaller.signature.arguments["data"] == "grammar"
    assert "Stock `from_pretrained`" in (small / "smaller" / "README.md").read_text()

    def again(subject: StudySubject) -> Record:
        raise AssertionError("a finished part is run again")

    for part in record.parts.records:
        monkeypatch.setitem(parts.PARTS, part, again)
    (small / "report.html").unlink()
    assert CliRunner().invoke(main, ["demo", "--quick", "--out", str(small)]).exit_code == 0
    assert (small / "report.html").is_file()


# The demo as a process of its own, of the smallest size.
PROCESS = """
import sys
from dataclasses import asdict, replace
from headcount.cli.main import main
from headcount.corpora.source import Source
from headcount.studies import demo
usual, small = demo.study, eval(sys.argv[1])
demo.study = lambda model, quick: replace(usual(model, quick=quick), **small)
main(["demo", "--quick", "--out", sys.argv[2]])
"""


@pytest.mark.slow  # three times the demo
def test_interrupted_twice_at_random_the_demo_ends_with_the_same_numbers(small: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "demo"
    shutil.copytree(small, elsewhere)
    command = [sys.executable, "-c", PROCESS, repr(SMALL)]
    subprocess.run([*command, "demo"], check=True, cwd=small.parent, capture_output=True)
    chance, interrupted = random.Random(), 0
    while interrupted < 2:
        process = subprocess.Popen(
            [*command, "demo"], cwd=elsewhere.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(timeout=chance.uniform(8, 40))
            break  # it was through before
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=120) != 0
            interrupted += 1
    assert interrupted
    subprocess.run([*command, "demo"], check=True, cwd=elsewhere.parent, capture_output=True)
    assert (elsewhere / "report.html").is_file()
    files = (folder / "study" / "record.json" for folder in (small, elsewhere))
    whole_run, pieces = (Record.load(file).parts.records for file in files)
    assert set(whole_run) == set(pieces)
    for part in set(whole_run) - {"speed"}:  # which is of the clock
        assert _timeless(encode(pieces[part].parts)) == _timeless(encode(whole_run[part].parts)), part
    weights = [(folder / "smaller" / "model.safetensors").read_bytes() for folder in (small, elsewhere)]
    assert weights[0] == weights[1]


def _timeless(found: Any) -> Any:
    """Without what the clock decides."""
    if isinstance(found, dict):
        return {name: _timeless(value) for name, value in found.items() if name != "seconds"}
    return [_timeless(value) for value in found] if isinstance(found, list) else found


def test_what_the_demo_trains() -> None:
    assert demo.training_settings(3, quick=False).recipe.seed == 3
    assert demo.training_settings(0, quick=True).recipe.steps < demo.training_settings(0, quick=False).recipe.steps


@pytest.mark.parametrize("options", [["--seed", "1"], ["--quick"]])
def test_another_seed_is_not_ignored_where_a_model_is_already(options: list[str], tmp_path: Path) -> None:
    model = tmp_path / "demo" / "model"
    settings = demo.training_settings(0, quick=False)
    journal.write_json(model / "training" / "settings.json", asdict(settings))
    journal.write_json(model / "config.json", {})
    done = CliRunner().invoke(main, ["demo", *options, "--out", str(tmp_path / "demo")])
    assert done.exit_code == 2
    assert "would make another model" in done.output
    assert "another folder with --out" in done.output
    assert demo.train_model(tmp_path / "demo") == model, "with the same seed it is the model"


@pytest.mark.parametrize("name", ["report.html", "smaller/config.json", "study/notes.txt"])
def test_what_stands_in_the_place_of_a_result_is_left_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trains(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "train_translation", trains)
    mine = tmp_path / "demo" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "demo")])
    assert done.exit_code == 2, done.output
    assert f"already has {name.split('/')[0]}, not of a demo" in " ".join(done.output.split())
    assert mine.read_text() == "mine"
