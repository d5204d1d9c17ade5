"""The demo: every part on one model, the page, the smaller model; gone on with, not begun again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import headcount as hc
import laboratory
from headcount.cli.main import main
from headcount.record import Record
from headcount.studies import demo, whole

SMALL = {
    "sentences": 6, "learned": 60, "followed": 2, "random": 1, "step": 0.5, "orders": ("gradient",), "batches": (1,),
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
    assert list(record.parts["missing"]) == ["attention"], "a vocabulary of 300 pieces has no rare ones"
    assert {*record.parts["records"], "attention"} == set(whole.PAPERS["all"])
    page = (small / "report.html").read_text(encoding="utf-8")
    assert "headcount demo" in page
    assert len(hc.locate(hc.load(small / "smaller")).heads) == round(0.6 * 24)

    def again(subject: whole.Subject) -> Record:
        raise AssertionError("a finished part is run again")

    for part in record.parts["records"]:
        monkeypatch.setitem(whole.PARTS, part, again)
    (small / "report.html").unlink()
    assert CliRunner().invoke(main, ["demo", "--quick", "--out", str(small)]).exit_code == 0
    assert (small / "report.html").is_file()


def test_what_the_demo_trains() -> None:
    assert demo.training(3, quick=False).recipe.seed == 3
    assert demo.training(0, quick=True).recipe.steps < demo.training(0, quick=False).recipe.steps
