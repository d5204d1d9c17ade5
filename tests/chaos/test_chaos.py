"""Tests of the fault injection: it finds planted faults, cleans up, and covers every long-running command."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import click
import pytest

from chaos import results
from chaos.campaign import Campaign
from chaos.cases import Bench, Case, Reference, Verdict
from chaos.commands import COMMANDS, Command
from chaos.page import page
from chaos.process import Interruption, Outcome, Program, Run
from headcount import journal
from headcount.cli.commands.study import STUDIES
from headcount.cli.main import commands
from headcount.errors import FolderError
from headcount.pruning.pipeline import choosers

QUICK = {"inspect", "attention", "translate", "push"}  # under a second, or write nothing


@click.group()
def program() -> None:
    """Correct and faulty commands."""


@program.command()
def careful() -> None:
    try:
        with journal.reserved("out"):
            for number in range(3):
                journal.write_json(Path("out") / f"{number}.json", {"number": number})
    except FolderError as error:
        raise click.ClickException(str(error)) from error


@program.command()
def half() -> None:
    """Write in place, and treat an existing file as finished."""
    if not Path("out").exists():
        Path("out").mkdir()
        with open("out/record.json", "w", encoding="utf-8") as file:
            file.write('{"steps": ')
            file.flush()
            Path("out/figures").mkdir()
            file.write("3}")


@program.command()
def messy() -> None:
    """Leave a temporary file, a lock and a process."""
    Path("tmp/tmp123").touch()
    Path("out").mkdir(exist_ok=True)
    Path("out/.headcount.lock").touch()
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)


@program.command()
def silent() -> None:
    Path("out").mkdir()
    Path("out/record.json").write_text("{}")
    raise SystemExit(3)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "inputs").mkdir()
    return Bench(Program(program), tmp_path / "inputs", tmp_path / "cases")


def judged(bench: Bench, name: str, *interruptions: Interruption, fault: str = "interrupted") -> Verdict:
    command = Command(name, model="")
    reference, _ = bench.reference(name, command)
    return bench.judge(Case(name, fault, interruptions, share=0.5), command, reference)


def test_a_half_file_is_found(bench: Bench) -> None:
    verdict = judged(bench, "half", Interruption(signal.SIGKILL, change=3))
    assert verdict.hit
    assert "out/record.json is not whole" in verdict.faults[0]
    assert any("result: out/record.json" in fault or "result: out/figures" in fault for fault in verdict.faults)


def test_what_is_left_behind_is_found(bench: Bench) -> None:
    verdict = judged(bench, "messy", Interruption(signal.SIGTERM, seconds=30.0))
    assert not verdict.hit
    for word in ("left: tmp/tmp123", "left: out/.headcount.lock", "orphan process"):
        assert any(word in fault for fault in verdict.faults), word


def test_a_failure_without_a_clear_line_is_found(bench: Bench) -> None:
    reference = Reference(0.1, 1, {}, 4096, 2)
    verdict = bench.judge(Case("silent", "two processes"), Command("silent", model=""), reference)
    assert any("without a clear line" in fault for fault in verdict.faults)


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_command_that_keeps_its_word_survives(bench: Bench, kind: signal.Signals) -> None:
    for change in (2, 5):
        verdict = judged(bench, "careful", Interruption(kind, change=change))
        assert verdict.hit
        assert not verdict.faults


def test_a_campaign_of_one_command(tmp_path: Path) -> None:
    """Run a command of headcount: faults are counted, and the seed determines the interruptions."""
    (tmp_path / "inputs").mkdir()
    journal.write_json(tmp_path / "inputs" / "record.json", {})
    command = Command("careful", model="")
    lines: list[str] = []
    campaign = Campaign(Program(program), {"careful": command}, tmp_path / "inputs", tmp_path, moments=2, workers=1)
    summary = campaign.run(lines.append)
    json.dumps(summary)
    row = summary["commands"]["careful"]
    assert row["cases"] == row["survived"] > 2, summary["faults"]
    assert summary["by_fault"]["interrupted"]["cases"] == 2


def test_a_summary_becomes_a_page() -> None:
    row = {"seconds": 1.0, "changes": 9, "cases": 25, "stopped": 20, "survived": 24, "lost": 3.25}
    summary = {
        "seed": 7, "moments": 20, "seconds": 600, "commands": {"score": row},
        "by_fault": {"interrupted": {"cases": 20, "stopped": 19, "survived": 19}},
        "faults": ["score: interrupted (SIGKILL at change 3): left: out/.headcount.lock"],
        "load": {"points": 1000, "examples": 300, "seconds": 1.8},
    }  # fmt: skip
    text = page([summary, {**summary, "faults": []}])
    assert "| 7 | 20 | 25 | 20 | 24 | 3.2 s | 10 |" in text
    assert "| score | 1.0 | 9 | 50 | 48 | 3.2 s |" in text
    assert "| interrupted | 40 | 38 | 38 |" in text
    assert text.count("not survived, seed 7: score: interrupted") == 1
    assert "1000 points of 300 examples resumes in 1.8 s" in text


def test_only_numbers_of_the_clock_are_left_out(tmp_path: Path) -> None:
    contents = []
    for name, seconds, steps in (("one", 1.0, 3), ("two", 2.0, 3), ("three", 1.0, 4)):
        record = {"signature": {"time": f"{seconds}"}, "parts": {"seconds": seconds, "steps": steps}}
        journal.write_json(tmp_path / name / "record.json", record)
        contents.append(results.contents(tmp_path / name, clock=False))
    assert contents[0] == contents[1]
    assert results.differences(contents[0], contents[2]) == ["record.json: differs"]


def test_a_refusal_is_one_clear_line() -> None:
    assert Outcome(1, 0.1, "Error: out is in use by process 3.\n").refusal
    assert not Outcome(1, 0.1, "Error: Unexpected OSError: x. Run again with --debug.\n").refusal
    assert not Outcome(0, 0.1, "Error: a.\n").refusal
    assert not Outcome(1, 0.1, "Traceback (most recent call last)\nError: a.\n").refusal


def test_a_run_that_hangs_is_ended(tmp_path: Path) -> None:
    hanging = Program(lambda *_, **__: time.sleep(60))
    assert Run(hanging, [], tmp_path).wait(0.5).status == -signal.SIGABRT


def test_a_signal_before_the_command_begins_is_not_the_commands(tmp_path: Path) -> None:
    early = Program(program, lambda _: os.kill(os.getpid(), signal.SIGINT))
    outcome = Run(early, ["careful"], tmp_path).wait(30)
    assert (outcome.status, outcome.output) == (130, "")


def test_every_command_that_takes_long_is_broken_on_purpose() -> None:
    named = {line.line.split()[0] for line in COMMANDS.values()}
    assert {name for name, _ in commands.items()} - QUICK <= named | {"study"}
    assert {f"study {name}" for name, _ in STUDIES.items()} <= set(COMMANDS)
    lines = [command.line for command in COMMANDS.values()]
    for name in (name for name in choosers.names() if name not in ("given", "rank")):
        assert any(f"--choose {name}" in line for line in lines), name
