"""Folders for results as a user meets them: in use, not writable, left by killed runs; and what is said of them."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from torch import nn

import headcount as hc
import records as made
import subjects
import zoo
from forks import PATIENCE, started
from headcount import journal, locks
from headcount.cli.commands.study import STUDIES
from headcount.cli.main import commands, main
from headcount.cli.options import Output
from headcount.pruning.search import Search
from headcount.record import Record
from tokens import sentences, word_tokenizer

TASK = ["--task", "language-modelling", "--data", "DIR/no.txt"]
WITH_OUT = {
    "ablate": ["DIR/no", *TASK],
    "attention": ["DIR/no", "--head", "encoder.0.0", "--text", "a b"],
    "bench": ["DIR/no"],
    "demo": [],
    "evaluate": ["DIR/no", "--data", "DIR/no"],
    "explore": ["DIR/no"],
    "export": ["DIR/no", "--to", "vllm"],
    "figure": ["all", "DIR/record.json"],
    "inspect": ["DIR/no"],
    "prune": ["DIR/no", "--remove", "encoder.0.0"],
    "roles": ["DIR/no", "--data", "DIR/no"],
    "score": ["DIR/no", *TASK],
    "train": ["--data", "DIR/no"],
    "study agreement": ["DIR/no", *TASK],
    "study all": ["DIR/no", "--data", "DIR/no"],
    "study compensation": ["DIR/no", *TASK],
    "study curves": ["DIR/no", *TASK],
    "study dynamics": ["DIR/no", *TASK],
    "study examples": ["DIR/no", "--data", "DIR/no"],
    "study michel2019": ["DIR/no", "--data", "DIR/no"],
    "study rules": ["DIR/no", *TASK],
    "study specialisation": ["DIR/no", *TASK],
    "study tradeoff": ["DIR/no", *TASK, "--keep", "1"],
    "study voita2019": ["DIR/no", "--data", "DIR/no"],
}


NEEDED = {name: WITH_OUT[name][1:] for name in ("bench", "study all", "study specialisation")}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def takes_out(command: click.Command) -> bool:
    return any(parameter.name == "out" for parameter in command.params)


def test_every_command_with_a_folder_is_listed_above() -> None:
    there = {name for name, command in commands.items() if takes_out(command)} - {"report"}  # which writes a file
    there |= {f"study {name}" for name, command in STUDIES.items() if takes_out(command)}
    assert there == set(WITH_OUT)


@pytest.mark.parametrize("name", WITH_OUT)
def test_a_folder_in_use_or_broken_is_said_before_any_work(name: str, tmp_path: Path) -> None:
    """Models and data are not there: to look for them is work."""
    made.SAMPLES["ablation-map"][0].save(tmp_path / "record.json")
    given = [argument.replace("DIR", str(tmp_path)) for argument in WITH_OUT[name]]
    (tmp_path / "out").mkdir()
    with open(tmp_path / "out" / locks.FOLDER_LOCK, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        print("process 4242 on elsewhere", file=file, flush=True)
        busy = run(*name.split(), *given, "--out", str(tmp_path / "out"))
    (tmp_path / "out" / locks.FOLDER_LOCK).unlink()
    (tmp_path / "out" / "figures").symlink_to(tmp_path / "nowhere")
    broken = run(*name.split(), *given, "--out", str(tmp_path / "out"))
    for done, message in ((busy, "out is in use by process 4242 on elsewhere."), (broken, "which does not exist")):
        assert done.exit_code == 1
        assert message in done.output
        assert done.output.count("\n") == 1


def test_a_report_that_cannot_be_written_is_said_before_it_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("report", str(tmp_path), "--out", str(tmp_path / "file" / "report.html"))
    assert done.exit_code == 1
    assert "file is not a writable folder" in done.output


@pytest.mark.parametrize("command", ["prune", "export"])
def test_a_mount_point_is_refused_before_any_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be renamed: the pruned model was discarded when it was finished."""
    out = tmp_path / "volume"
    out.mkdir()
    monkeypatch.setattr("headcount.journal.is_mount", lambda path: path == out)
    arguments = [part.replace("DIR", str(tmp_path)) for part in WITH_OUT[command]]
    done = run(command, *arguments, "--out", str(out))
    assert done.exit_code == 1
    assert "volume: it is a mount point" in done.output
    assert f"Give a path inside it, such as {out / 'model'}." in done.output


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "gpt2"
    hc.save(zoo.build("gpt2"), folder, tokenizer=word_tokenizer())
    (folder / "texts.txt").write_text("\n".join(sentences(4)))
    return folder


def test_only_figures_that_are_there_are_named(writer: Path, tmp_path: Path) -> None:
    task = ["--task", "language-modelling", "--data", f"{writer}/texts.txt"]
    done = run("score", str(writer), *task, "--method", "magnitude", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert "record.json" in done.output
    assert ("figures:" in done.output) == (tmp_path / "out" / "figures").exists()
    assert not (tmp_path / "out" / locks.FOLDER_LOCK).exists()


def test_prune_replaces_a_model_whose_replacement_was_killed(writer: Path, tmp_path: Path) -> None:
    """Between the two renames of a system that cannot exchange names."""
    out, scratch = tmp_path / "small", tmp_path / ".small.headcount-dead"
    hc.save(zoo.build("gpt2"), scratch / "old")
    (scratch / "lock").touch()
    prune = ["prune", str(writer), "--remove", "decoder.0.0", "--out", str(out), "--no-verify"]
    refused = run(*prune)
    assert refused.exit_code == 1
    assert "not empty; pass overwrite=True (--overwrite)" in refused.output
    assert len(hc.locate(hc.load(out)).heads) == 12
    assert run(*prune, "--overwrite").exit_code == 0
    assert len(hc.locate(hc.load(out)).heads) == 11
    assert [path.name for path in tmp_path.iterdir()] == ["small"]
    assert not [path for path in out.iterdir() if path not in journal.contents(out)]


def test_sigterm_ends_a_command_as_ctrl_c_does(writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("headcount.studies.scoring.scoring", interrupted)
    task = ["--task", "language-modelling", "--data", f"{writer}/texts.txt"]
    done = run("score", str(writer), *task, "--out", str(tmp_path / "out"))
    assert done.exit_code == 143
    assert done.output == "Error: Interrupted; no partly written files were left behind.\n"
    assert not list(tmp_path.iterdir()), "no lock, no folder"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_results_do_not_replace_the_record_of_a_model(writer: Path) -> None:
    task = ["--task", "language-modelling", "--data", f"{writer}/texts.txt"]
    before = {path.name for path in writer.iterdir()}
    for command in (
        ["score", str(writer), "--method", "magnitude"],
        ["prune", str(writer), "--choose", "l0", "--penalty", "1,2"],
    ):
        done = run(*command, *task, "--out", str(writer))
        assert done.exit_code == 1
        assert "holds a model, whose record.json would be replaced; give another folder" in done.output
        assert {path.name for path in writer.iterdir()} == before


def test_results_replace_only_those_of_the_same_command(tmp_path: Path) -> None:
    file, given = tmp_path / "record.json", [part.replace("DIR", str(tmp_path)) for part in WITH_OUT["score"]]
    for content, message in (
        (subjects.ablation(subjects.ONE_LAYER).to_json(), "is the result of 'ablate', which that of 'score' would"),
        ("my own", "is not a record of headcount, which that of 'score' would replace; move it, or give another"),
        ("[1]", "is not a record of headcount"),
    ):
        file.write_text(content)
        done = run("score", *given, "--out", str(tmp_path))
        assert done.exit_code == 1
        assert message in " ".join(done.output.split())
        assert file.read_text() == content
    content = replace_model(subjects.score(subjects.ONE_LAYER).to_json(), "another-model")
    file.write_text(content)
    done = run("score", *given, "--out", str(tmp_path))
    assert "is the result of 'score' on another-model, which that on" in " ".join(done.output.split())
    assert file.read_text() == content
    file.write_text(replace_model(content, given[0]))
    assert "would replace" not in run("score", *given, "--out", str(tmp_path)).output


def test_results_of_other_settings_stay(tmp_path: Path) -> None:
    """The same command on the same model, with another method or other data, replaced the earlier record."""
    output = Output(tmp_path, (), all_rows=False, as_json=False, study="score")
    first = subjects.score(subjects.ONE_LAYER)
    other = replace(first, signature=replace(first.signature, data="of other texts", time="later"))
    again = replace(first, signature=replace(first.signature, time="later still", versions={"headcount": "newer"}))
    output.save(first)
    output.save(again)
    assert [path.name for path in tmp_path.glob("record*")] == ["record.json"]
    for number, record in enumerate([other, first], start=2):
        with pytest.warns(UserWarning, match=r"record\.json\.old2?: it was yours, or that of an earlier run"):
            output.save(record)
        assert len([*tmp_path.glob("record*")]) == number
    read = [
        Record.load(tmp_path / name).signature.time for name in ("record.json", "record.json.old2", "record.json.old")
    ]
    assert read == [first.signature.time, "later", "later still"]


def test_records_of_several_models_replace_only_those_of_the_same_command(tmp_path: Path) -> None:
    """Both have their models in folders inside, and one record of all of them."""
    file = subjects.ablation(subjects.ONE_LAYER).save(tmp_path / "record.json")
    before = file.read_text()
    for study, command in (
        ("prune-sweep", ["prune", "no", "--choose", "l0", "--penalty", "1,2", *TASK]),
        ("pool", ["study", "michel2019", "no", "nowhere", *TASK]),
    ):
        done = run(*command, "--out", str(tmp_path))
        assert done.exit_code == 1
        assert f"is the result of 'ablate', which that of '{study}' would replace" in " ".join(done.output.split())
        assert file.read_text() == before


def test_a_study_of_models_does_not_replace_that_of_others(tmp_path: Path) -> None:
    file, study = tmp_path / "record.json", ["study", "specialisation"]
    file.write_text(replace_model(subjects.specialisation().to_json(), "a b"))
    before = file.read_text()
    done = run(*study, "c", "d", *TASK, "--out", str(tmp_path))
    assert "is the result of 'specialisation' on a b, which that on c d would replace" in " ".join(done.output.split())
    assert file.read_text() == before
    assert "would replace" not in run(*study, "a", "b", *TASK, "--out", str(tmp_path)).output


def replace_model(record: str, name: str) -> str:
    """The JSON of a record with another name of the model."""
    content = json.loads(record)
    content["signature"]["model"] = name
    return json.dumps(content)


def begin(name: str, writer: Path, out: Path, patch: pytest.MonkeyPatch, *options: str) -> list[str]:
    """Interrupt a command right before its result is saved; returns its arguments."""
    task = ["--task", "language-modelling", "--data", f"{writer}/texts.txt", "--limit", "2"]
    arguments = [name, str(writer), *task, "--format", "png", "--out", str(out), *options]
    with patch.context() as interrupting:
        interrupting.setattr("headcount.cli.options.Output.save", _interrupted)
        assert run(*arguments).exit_code != 0
    return arguments


def test_unfinished_work_of_another_command_stays(
    writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that of earlier versions, which has no note of its command; the command itself resumes both."""
    ablate = begin("ablate", writer, tmp_path, monkeypatch)
    work, note = tmp_path / "unfinished", tmp_path / "unfinished" / "study.json"
    for other in ("score", "evaluate", "inspect"):
        given = [part.replace("DIR", str(tmp_path)) for part in WITH_OUT[other]]
        for noted in (True, False):
            if noted:
                journal.write_json(note, {"study": "ablate"})
            else:
                note.unlink()
            before = set(work.rglob("*"))
            done = run(other, *given, "--out", str(tmp_path))
            assert done.exit_code == 1
            assert f"is unfinished work of 'ablate', not of '{other}'" in " ".join(done.output.split())
            assert set(work.rglob("*")) == before
    monkeypatch.setattr("headcount.journal.Shelf.put", None)  # nothing is measured again
    assert run(*ablate).exit_code == 0
    assert not work.exists()


def test_unfinished_work_of_another_score_stays(writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the score itself has no pieces."""
    ablation = begin("score", writer, tmp_path, monkeypatch, "--method", "ablation")
    work = set((tmp_path / "unfinished").rglob("*"))
    assert any(file.suffix == ".safetensors" for file in work)
    done = run(*ablation[:-1], "magnitude")
    assert done.exit_code == 1
    assert "is unfinished work of another score than 'magnitude'" in " ".join(done.output.split())
    assert set((tmp_path / "unfinished").rglob("*")) == work


@pytest.mark.parametrize(
    ("study", "more", "less", "part"),
    [
        (
            "agreement", ["--methods", "magnitude,random"], ["--methods", "random"],
            "finished/0-of-1/magnitude.safetensors",
        ),
        (
            "tradeoff", ["--ways", "random/untuned", "--no-roles", "--keep", "8,4"],
            ["--ways", "random/untuned", "--no-roles", "--keep", "8"], "arms/random.untuned-4-0.json",
        ),
    ],
)  # fmt: skip
def test_unfinished_parts_that_a_result_does_not_have_stay(
    writer: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    study: str,
    more: list[str],
    less: list[str],
    part: str,
) -> None:
    (tmp_path / "data").mkdir()
    for number, split in enumerate(("train", "dev", "test")):
        (tmp_path / "data" / f"{split}.txt").write_text("\n".join(sentences(12)[4 * number :][:4]))
    out, work = tmp_path / "out", tmp_path / "out" / "unfinished"
    command = ["study", study, str(writer), "--task", "language-modelling", "--data", str(tmp_path / "data")]
    command += ["--format", "png", "--out", str(out)]
    with monkeypatch.context() as patch:
        patch.setattr("headcount.cli.options.Output.save", _interrupted)
        assert run(*command, *more).exit_code != 0
    assert run(*command, *less).exit_code == 0
    assert (work / part).is_file(), [*work.rglob("*")]
    assert run(*command, *more).exit_code == 0
    assert not work.exists()


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_unfinished_work_stays_if_heads_are_measured_until_they_are_certain(
    bert: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That way has no pieces, and removed those of the other."""
    hc.save(bert, tmp_path / "bert", tokenizer=word_tokenizer())
    rows = (f"{text}\t{number % 2}\n" for number, text in enumerate(sentences(6)))
    (tmp_path / "texts.tsv").write_text("text\tlabel\n" + "".join(rows))
    command = ["ablate", str(tmp_path / "bert"), "--task", "classification", "--data", str(tmp_path / "texts.tsv")]
    command += ["--format", "png", "--out", str(tmp_path / "out")]
    with monkeypatch.context() as patch:
        patch.setattr("headcount.cli.options.Output.save", _interrupted)
        assert run(*command).exit_code != 0
    early = run(*command, "--early")
    assert early.exit_code == 0, early.output
    assert (tmp_path / "out" / "unfinished" / "first" / "0-of-1" / "0.safetensors").is_file()
    assert run(*command).exit_code == 0
    assert not (tmp_path / "out" / "unfinished").exists()


@pytest.mark.parametrize("method", ["ablation", "gradient"])
def test_a_score_is_not_lost_before_its_record_is_saved(
    writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A full disk at the end cost the whole measurement."""
    arguments = begin("score", writer, tmp_path, monkeypatch, "--method", method)
    monkeypatch.setattr("headcount.journal.Shelf.put", None)  # nothing is measured again
    assert run(*arguments).exit_code == 0
    assert not (tmp_path / "unfinished").exists()


def test_a_file_that_the_user_puts_beside_unfinished_work_stays(
    writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = begin("score", writer, tmp_path, monkeypatch)
    own = tmp_path / "unfinished" / "notes.txt"
    own.write_text("mine")
    assert run(*arguments).exit_code == 0
    assert [path for path in own.parent.rglob("*") if path.is_file()] == [own]


def test_a_folder_of_the_user_is_not_taken_for_unfinished_work(tmp_path: Path) -> None:
    own = tmp_path / "unfinished" / "chapter.md"
    own.parent.mkdir()
    own.write_text("mine")
    for name in ("inspect", "score"):
        done = run(name, *(part.replace("DIR", str(tmp_path)) for part in WITH_OUT[name]), "--out", str(tmp_path))
        assert done.exit_code == 1
        assert "unfinished has files that headcount did not write" in " ".join(done.output.split())
        assert [*own.parent.iterdir()] == [own]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_greedy_search_that_is_killed_resumes_without_training(
    writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heads taken so far are kept beside the folder, the model is the same to the bit, and nothing stays."""
    screen, calls = Search._screen, []

    def killing(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return screen(*arguments)

    search = ["prune", str(writer), "--choose", "greedy", "--keep", "9", "--candidates", "1", "--no-verify"]
    search += ["--task", "language-modelling", "--data", f"{writer}/texts.txt", "--limit", "6"]
    assert run(*search, "--out", str(tmp_path / "whole")).exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(Search, "_screen", killing)
        process = started(lambda: run(*search, "--out", str(tmp_path / "killed")))
        process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL
    other = run(*search, "--at-least", "1", "--out", str(tmp_path / "killed"))
    assert "was begun with other settings" in other.output
    monkeypatch.setattr(Search, "_screen", lambda *arguments: calls.append(arguments) or screen(*arguments))
    assert run(*search, "--out", str(tmp_path / "killed")).exit_code == 0
    assert len(calls) == 1, "two of the three heads had been taken"
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "whole"]


def test_a_search_that_was_saved_before_a_kill_leaves_no_unfinished_folder(
    writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = ["prune", str(writer), "--choose", "greedy", "--keep", "11", "--candidates", "1", "--no-verify"]
    search += ["--task", "language-modelling", "--data", f"{writer}/texts.txt", "--limit", "6", "--out"]
    with monkeypatch.context() as patch:
        patch.setattr("headcount.journal.remove_folder", str)  # as if killed right before it
        assert run(*search, str(tmp_path / "out")).exit_code == 0
    assert (tmp_path / "out.unfinished").is_dir()
    (tmp_path / ".out.unfinished.headcount-abc" / "gone").mkdir(parents=True)  # of a removal that was killed
    (tmp_path / ".out.unfinished.headcount-abc" / "lock").touch()
    again = run(*search, str(tmp_path / "out"))
    assert "is not empty; pass overwrite=True" in again.output
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_of_the_user_in_the_place_of_an_unfinished_search_stay(
    writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There before: refused. Written during the search: left alone."""
    search = ["prune", str(writer), "--choose", "greedy", "--keep", "11", "--candidates", "1", "--no-verify"]
    search += ["--task", "language-modelling", "--data", f"{writer}/texts.txt", "--limit", "6", "--out"]
    own = tmp_path / "out.unfinished" / "notes.txt"
    own.parent.mkdir()
    own.write_text("mine")
    refused = run(*search, str(tmp_path / "out"))
    assert refused.exit_code == 1
    assert "out.unfinished has files that headcount did not write" in " ".join(refused.output.split())
    assert [*own.parent.iterdir()] == [own]
    own.unlink()
    screen = Search._screen

    def writing(*arguments: Any) -> Any:
        own.write_text("mine")
        return screen(*arguments)

    monkeypatch.setattr(Search, "_screen", writing)
    done = run(*search, str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert [*own.parent.iterdir()] == [own]


def test_a_search_of_other_settings_stays_also_without_a_step(
    writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command with other settings is refused and leaves it; one that is refused itself leaves no folder."""
    search = ["prune", str(writer), "--choose", "greedy", "--keep", "11", "--candidates", "1", "--no-verify"]
    search += ["--task", "language-modelling", "--data", f"{writer}/texts.txt", "--limit", "6"]
    search += ["--out", str(tmp_path / "out")]

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Search, "_screen", stop)
        assert run(*search).exit_code != 0
    work = {path: path.read_bytes() for path in (tmp_path / "out.unfinished").iterdir()}
    assert "settings.json" in {path.name for path in work}
    other = run(*search, "--at-least", "1")
    assert "was begun with other settings" in " ".join(other.output.split())
    assert {path: path.read_bytes() for path in (tmp_path / "out.unfinished").iterdir()} == work


def test_an_unfinished_search_stays_beside_another_model(writer: Path, tmp_path: Path) -> None:
    search = ["prune", str(writer), "--choose", "greedy", "--keep", "11", "--candidates", "1", "--no-verify"]
    search += ["--task", "language-modelling", "--data", f"{writer}/texts.txt", "--limit", "6", "--out"]
    assert run(*search, str(tmp_path / "out")).exit_code == 0
    (tmp_path / "out.unfinished").mkdir()
    (tmp_path / "out.unfinished" / "record.json").write_text("{}")
    assert run(*search, str(tmp_path / "out")).exit_code == 1
    assert (tmp_path / "out.unfinished" / "record.json").is_file()


def test_translations_of_the_user_are_refused_before_any_work(writer: Path, tmp_path: Path) -> None:
    (tmp_path / "translations.txt").write_text("mine")
    task = ["--task", "translation", "--data", str(tmp_path / "no.txt")]
    done = run("evaluate", str(writer), *task, "--out", str(tmp_path))
    assert done.exit_code == 1
    assert "translations.txt would be overwritten by the translations" in " ".join(done.output.split())
    assert (tmp_path / "translations.txt").read_text() == "mine"


def test_a_page_replaces_only_a_page(tmp_path: Path) -> None:
    record = subjects.evaluation().save(tmp_path / "record.json")
    before = record.read_bytes()
    refused = CliRunner().invoke(main, ["report", str(record), "--out", str(record)])
    assert refused.exit_code == 2
    assert "is not a page of headcount and would be overwritten" in refused.output
    assert record.read_bytes() == before
    own = tmp_path / "report.html"
    own.write_text("<!doctype html><title>Our headcount</title>")
    assert CliRunner().invoke(main, ["report", str(record), "--out", str(own)]).exit_code == 2
    assert own.read_text() == "<!doctype html><title>Our headcount</title>"
    for _ in range(2):
        written = CliRunner().invoke(main, ["report", str(record), "--out", str(tmp_path / "page.html")])
        assert written.exit_code == 0, written.output


def test_a_model_in_this_folder_has_the_name_of_the_folder(
    writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its page was headed "The heads of ."."""
    monkeypatch.chdir(writer)
    for name in (".", "epochs/.."):
        (writer / "epochs").mkdir(exist_ok=True)
        done = run("inspect", name, "--out", str(tmp_path / "i"))
        assert done.exit_code == 0, done.output
        record = Record.load(tmp_path / "i" / "record.json")
        assert Path(record.signature.model).name == writer.name


@pytest.mark.parametrize("command", ["study all", "study specialisation", "bench MODEL", "bench"])
def test_every_model_in_this_folder_has_the_name_of_the_folder(command: str) -> None:
    """Also of commands that accept several."""
    name, *_ = command.split(" MODEL")
    group: Any = main
    for part in name.split():
        group = group.get_command(click.Context(main), part)
    before = ["hub/model"] if "MODEL" in command else []
    with group.make_context(name, [*before, ".", *NEEDED.get(name, [])]) as context:
        values = [context.params.get(key) for key in ("model", "models", "pruned_models")]
    names = [text for value in values if value for text in (value if isinstance(value, tuple) else (value,))]
    assert names == [*before, str(Path.cwd())]


@pytest.mark.parametrize("command", ["inspect", "study all", "study specialisation", "bench MODEL"])
def test_a_model_without_a_name_is_refused(command: str) -> None:
    """It was this folder."""
    name, *_ = command.split(" MODEL")
    before = ["hub/model"] if "MODEL" in command else []
    done = run(*name.split(), *before, "", *NEEDED.get(name, []))
    assert done.exit_code == 2
    assert "is empty: give the folder of a model, such as . for this one, or its id" in " ".join(done.output.split())
