"""What reaches the terminal, or a file in its place: progress, text of others, a pipe that is closed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import records as made
from headcount import journal
from headcount.cli import lines, show
from headcount.cli.main import main
from headcount.record import Record, Signature
from headcount.record.results.score import Scoring
from headcount.training.loop import Report


def test_training_has_lines_where_it_has_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with show.Training() as shown:
        shown.step(Report(step=20, of=600, epoch=2, loss=3.2143, tokens_per_second=5400.0, rate=0.1))
        shown.step(Report(step=40, of=600, epoch=2, loss=3.0, tokens_per_second=5400.0, rate=0.1))
    assert capsys.readouterr().err == "0:00  step 20 of 600, epoch 2, loss 3.214, 5400 tokens/s\n"


def test_parts_have_lines_where_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for every_part, expected in ((True, "0:00  ablation 0 of 9\n0:00  curves 1\n"), (False, "")):
        with show.Bars(every_part=every_part) as bars:
            for part, done, of in (("ablation", 0, 9), ("ablation", 9, 9), ("curves", 1, 0)):
                bars.show(part, done, of)
        assert capsys.readouterr().err == expected


def test_long_work_has_a_line_every_half_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lines.SECONDS == 30
    monkeypatch.setattr(lines, "SECONDS", 0.0)
    asked = threading.Semaphore(0)

    def describe() -> str:
        asked.release()
        return "reading"

    with lines.Lines(show.console(), describe):
        for _ in range(3):
            assert asked.acquire(timeout=60)
    assert capsys.readouterr().out.startswith("0:00  reading\n0:00  reading\n")


@pytest.mark.parametrize("charset", ["ascii", "latin-1"])
def test_characters_that_the_output_lacks_do_not_end_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, charset: str
) -> None:
    record = Record("score", Signature("日本 ü"), Scoring("gradient", {"encoder.0.0": -1.0}, {"encoder.0.0": 1}))
    record.save(tmp_path / "record.json")
    done = CliRunner(charset=charset).invoke(main, ["report", str(tmp_path), "--plain"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "model:?? " in done.stdout_bytes.decode(charset)
    output = io.TextIOWrapper(io.BytesIO(), encoding=charset)
    monkeypatch.setattr(sys, "stdout", output)
    show.result(record, as_json=True)
    output.seek(0)
    assert Record.from_json(output.read()) == record


def test_text_of_a_record_is_text(tmp_path: Path) -> None:
    signature = Signature("model\x1b[31mred\x1b]0;title\x07\x9b2J")
    Record("score", signature, Scoring("\x1b[2Jx", {"encoder.0.0": 1.0}, {"encoder.0.0": 1})).save(
        tmp_path / "record.json"
    )
    shown = CliRunner().invoke(main, ["report", "--plain", str(tmp_path)], color=True)
    assert shown.exit_code == 0
    assert "modelred" in shown.output
    Record("odd\x1b[31mstudy", signature, Scoring("x", {}, {})).save(tmp_path / "record.json")
    wrong = CliRunner().invoke(main, ["figure", "all", str(tmp_path), "--out", str(tmp_path / "out")], color=True)
    assert "oddstudy" in wrong.output
    assert not set("\x1b\x9b\x07") & set(shown.output + wrong.output)


def test_all_figures_are_those_that_any_record_has(tmp_path: Path) -> None:
    """They were those that all records share, and others were left out without a word."""
    for name, record in (("ablation", made.ablation()), ("roles", made.roles())):
        record.save(tmp_path / name / "record.json")
    folders = [str(tmp_path / name) for name in ("ablation", "roles")]
    drawn = CliRunner().invoke(main, ["figure", "all", *folders, "--format", "svg", "--out", str(tmp_path / "out")])
    assert drawn.exit_code == 0, drawn.output
    assert {"ablation-map.svg", "head-roles.svg"} <= {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize("command", [["report"], ["report", "--plain"], ["figure", "ablation-map"]], ids=" ".join)
@pytest.mark.parametrize(("part", "value"), [("one_out", 5), ("alpha", None)])
def test_a_record_that_lacks_something_is_named(command: list[str], part: str, value: Any, tmp_path: Path) -> None:
    plain = made.ablation().to_plain()
    plain["parts"][part] = value
    if value is None:
        del plain["parts"][part]
    file = journal.write_json(tmp_path / "record.json", plain)
    out = [] if "--plain" in command else ["--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [*command, str(file), *out])
    assert done.exit_code == 1
    assert f"Error: {file} is a damaged record: parts.{part} is " in done.output


def test_a_reader_that_has_enough_ends_the_program_quietly(tmp_path: Path) -> None:
    made.ablation().save(tmp_path / "record.json")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "headcount", "report", "--plain", str(tmp_path)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_bars_of_datasets_stay_out_of_logs() -> None:
    code = "import headcount.cli.main; from datasets import Dataset; Dataset.from_dict({'a': [1]}).map(dict)"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_DATASETS")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_an_interruption_while_libraries_clean_up_shows_no_traceback() -> None:
    code = (
        "import atexit, os, signal; from headcount.cli.main import main;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT)); main(['--version'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize(("number", "status"), [("SIGINT", 1), ("SIGTERM", 143)])
def test_an_interruption_that_reaches_a_destructor_is_not_lost(number: str, status: int) -> None:
    code = f"""
import os, signal, time
from headcount.cli.main import commands, main

class Resource:
    def __del__(self):
        os.kill(os.getpid(), signal.{number})
        time.sleep(0.001)

def work(**_):
    Resource()
    time.sleep(20)  # a lost interruption ends here, with status 0

commands["inspect"].callback = work
signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background ignore it
main(["inspect", "model"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "Error: Interrupted; no partly written files were left behind.\n")


def test_warnings_are_lines_without_source_code() -> None:
    code = (
        "import warnings; from headcount.cli.main import commands, main;"
        "commands['inspect'].callback = lambda **_: warnings.warn('3 rows were skipped.'); main(['inspect', 'model'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "Warning: 3 rows were skipped.\n"
