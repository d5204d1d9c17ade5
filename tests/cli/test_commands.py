"""The command line as a user meets it: output, files, exit status, wrong input."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import headcount as hc
import zoo
from headcount.cli.main import commands, main
from headcount.record.codec import encode
from headcount.report.data import data_names, data_path, measured_data
from tokens import sentences, word_tokenizer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "marian"
    hc.save(zoo.build("marian"), folder)
    (folder / "tokenizer_config.json").write_text("{}")
    return str(folder)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize("name", commands.names())
def test_every_command_has_help(name: str) -> None:
    done = run(name, "--help")
    assert done.exit_code == 0
    assert "Usage:" in done.output


def options(command: click.Command) -> Iterator[click.Option]:
    context = click.Context(command)
    yield from (parameter for parameter in command.params if isinstance(parameter, click.Option))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from options(command.get_command(context, name))


def test_help_of_every_option_is_a_sentence() -> None:
    unclear = {option.opts[0]: option.help for option in options(main) if not re.match("[A-Z]", option.help or "")}
    assert not unclear


def test_help_has_no_range_without_ends() -> None:
    ranges = {name: run(*name.split(), "--help").output for name in ("study compensation", "evaluate", "translate")}
    assert not [name for name, output in ranges.items() if "None" in output]
    assert ".02 for a metric between 0 and 1" in " ".join(ranges["study compensation"].split())


def test_inspect_shows_every_site(model: str) -> None:
    done = run("inspect", model)
    assert done.exit_code == 0, done.output
    for site in ("encoder.0", "decoder.2", "cross.1", "36 heads", "FLOPs (64 tokens)", "Next: headcount prune"):
        assert site in done.output


def test_inspect_as_json_and_record(model: str, tmp_path: Path) -> None:
    done = run("inspect", model, "--json", "--out", str(tmp_path))
    record = json.loads(done.stdout)
    assert record["study"] == "inspect"
    assert len(record["parts"]["sites"]) == 9
    assert len(record["signature"]["weights"]) == 40
    saved = hc.Record.load(tmp_path / "record.json")
    assert encode(saved.parts) == record["parts"]


def test_prune_saves_a_model_that_is_what_it_says(model: str, tmp_path: Path) -> None:
    out = tmp_path / "small"
    done = run("prune", model, "--remove", "encoder.0.3, cross.1.*", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "5 of 36 heads were removed by" in done.output
    assert "Stock code refuses its shapes" in done.output
    assert (out / "tokenizer_config.json").exists()
    assert hc.Record.load(out / "record.json").parts.removed_heads == (
        "encoder.0.3",
        *(f"cross.1.{i}" for i in range(4)),
    )
    assert len(hc.locate(hc.load(out)).heads) == 31
    again = run("inspect", str(out))
    assert "3/4" in again.output
    assert "empty" in again.output


@pytest.fixture
def _failing_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the comparison of every pruned model found a difference."""
    fault = {"head encoder.0.0": "head encoder.0.0: pruned and masked model differ by 1 of its size."}
    monkeypatch.setattr("headcount.surgery.verify.Expectation.compare", lambda *_: ({}, fault))


@pytest.mark.usefixtures("_failing_verification")
def test_what_verification_refuses_is_kept_aside(model: str, tmp_path: Path) -> None:
    arguments = ("prune", model, "--remove", "encoder.0.3", "--out", str(tmp_path / "half"))
    done = run(*arguments)
    assert done.exit_code == 1
    assert "head encoder.0.0: pruned and masked model differ" in done.stderr
    assert f"kept in {tmp_path / 'half.unverified'}" in done.stderr.replace("\n", " ")
    assert not (tmp_path / "half").exists()
    aside = tmp_path / "half.unverified"
    assert hc.locate(hc.load(aside))["encoder.0"].heads == (0, 1, 2)
    assert (aside / "tokenizer_config.json").exists()
    assert hc.Record.load(aside / "record.json").parts.verified is False
    assert run(*arguments).exit_code == 1
    assert (tmp_path / "half.unverified.2" / "config.json").exists()
    assert run(*arguments, "--no-verify").exit_code == 0
    assert (tmp_path / "half" / "config.json").exists()


@pytest.mark.usefixtures("_failing_verification")
def test_what_a_search_found_is_kept_aside_too(writer: str, tmp_path: Path) -> None:
    data = ("--task", "language-modelling", "--data", f"{writer}/texts.txt", "--keep", "50%", "--step", "100%")
    done = run("prune", writer, "--choose", "gradient", *data, "--out", str(tmp_path / "half"))
    assert done.exit_code == 1
    assert "half.unverified" in done.stderr
    record = hc.Record.load(tmp_path / "half.unverified" / "record.json")
    assert record.parts.curve
    assert record.parts.fault.startswith("head encoder.0.0")
    assert len(hc.locate(hc.load(tmp_path / "half.unverified")).heads) == 6


def test_the_record_of_prune_says_what_its_data_are(writer: str, tmp_path: Path) -> None:
    texts, tasked = f"{writer}/texts.txt", ("--task", "language-modelling", "--data", f"{writer}/texts.txt")
    chosen = ("--choose", "gradient", "--keep", "50%", "--step", "100%")
    for name, options in {"chosen": chosen, "named": ("--remove", "decoder.0.0")}.items():
        done = run("prune", writer, *options, *tasked, "--out", str(tmp_path / name))
        assert done.exit_code == 0, done.output
    evaluated = run("evaluate", str(tmp_path / "named"), *tasked, "--out", str(tmp_path / "evaluated"))
    assert evaluated.exit_code == 0, evaluated.output
    choice, named, whole = (
        hc.Record.load(tmp_path / name / "record.json") for name in ("chosen", "named", "evaluated")
    )
    assert data_names([choice]) == {
        choice.signature.data: "texts.txt, one half",
        choice.signature.arguments["measured_on"]: "texts.txt, the other half",
    }
    assert (data_path(choice), data_path(named)) == (f"{texts}, the other half", texts)
    assert measured_data(named) == named.signature.data == whole.signature.data


def test_prune_by_what_stays(model: str, tmp_path: Path) -> None:
    done = run(
        "prune", model, "--keep", "encoder.*,decoder.*,cross.?.0", "--out", str(tmp_path / "s"), "--json", "--no-verify"
    )
    assert len(json.loads(done.stdout)["parts"]["removed_heads"]) == 9


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["inspekt"], 2, "Did you mean 'inspect'"),
        (["inspect"], 2, "MODEL"),
        (["inspect", "/no/such/folder"], 1, "There is no folder /no/such/folder"),
        (["prune", "MODEL", "--out", "OUT"], 2, "either --remove or --keep"),
        (["prune", "MODEL", "--remove", "a", "--keep", "b", "--out", "OUT"], 2, "either --remove or --keep"),
        (["prune", "MODEL", "--keep", "", "--out", "OUT"], 2, "either --remove or --keep"),
        (["prune", "MODEL", "--remove", " , ", "--out", "OUT"], 2, "either --remove or --keep"),
        (["prune", "MODEL", "--remove", "encoder.0.9", "--out", "OUT"], 2, "encoder.0 has heads 0 to 3"),
        (["prune", "MODEL", "--remove", "vision.0.0", "--out", "OUT"], 2, "There is no head vision.0.0"),
        (["prune", "MODEL", "--remove", "nonsense", "--out", "OUT"], 2, "not the name of a head"),
        (["prune", "MODEL", "--remove", "encoder.0.0"], 2, "--out"),
        (["prune", "MODEL", "--remove", "encoder.0.0", "--out", "MODEL"], 1, "not empty"),
        (["inspect", "MODEL", "--length", "0"], 2, "--length"),
    ],
)
def test_wrong_input_gives_one_clear_line(
    model: str, tmp_path: Path, arguments: list[str], status: int, message: str
) -> None:
    before = sorted(path.name for path in Path(model).iterdir())
    done = run(*(argument.replace("MODEL", model).replace("OUT", str(tmp_path / "out")) for argument in arguments))
    assert done.exit_code == status
    assert message in done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "out").exists()
    assert sorted(path.name for path in Path(model).iterdir()) == before


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A language model with its tokenizer and texts beside it."""
    folder = tmp_path_factory.mktemp("models") / "gpt2"
    hc.save(zoo.build("gpt2"), folder, tokenizer=word_tokenizer())
    (folder / "texts.txt").write_text("\n".join(sentences(9)))
    return str(folder)


def test_score_shows_saves_and_agrees_with_the_library(writer: str, tmp_path: Path) -> None:
    arguments = ["score", writer, "--task", "language-modelling", "--data", f"{writer}/texts.txt", "--batch-size", "4"]
    done = run(*arguments, "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "By the gradient score" in done.output
    found = hc.Record.load(tmp_path / "record.json").parts.scores
    task = hc.task("language-modelling", texts=sentences(9), tokenizer=word_tokenizer())
    expected = hc.score("gradient", hc.load(writer), task)
    assert found == {str(head): pytest.approx(value, abs=1e-5) for head, value in expected.items()}
    other = json.loads(run(*arguments, "--method", "fisher", "--granularity", "batch", "--json").stdout)
    assert other["signature"]["arguments"]["granularity"] == "batch"
    assert other["signature"]["arguments"]["data"] == f"{writer}/texts.txt", "a file has no split"
    assert f"data:{writer}/texts.txt {other['signature']['data'][:12]}|" in done.output.replace("\n", "")


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (["--data", "/no/such.txt"], 1, "There is no file"),
        (["--task", "classification"], 1, "neither .tsv nor .jsonl"),
        (["--method", "gradients"], 2, "gradient"),
        (["--limit", "0"], 2, "--limit"),
    ],
)
def test_score_with_wrong_input(writer: str, change: list[str], status: int, message: str) -> None:
    done = run("score", writer, "--task", "language-modelling", "--data", f"{writer}/texts.txt", *change)
    assert done.exit_code == status
    assert message in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    "command", [["score"], ["ablate"], ["prune", "--choose", "gradient", "--keep", "50%", "--out", "small"]]
)
def test_a_task_that_does_not_fit_the_model_is_one_clear_line(writer: str, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "dev.tsv").write_text("label\ttext\n" + "".join(f"{n % 2}\t{t}\n" for n, t in enumerate(sentences(6))))
    arguments = [str(tmp_path / "small") if argument == "small" else argument for argument in command[1:]]
    data = ["--task", "classification", "--data", str(tmp_path / "dev.tsv")]
    done = run(command[0], writer, *data, *arguments)
    assert done.exit_code == 1
    assert "was saved from GPT2LMHeadModel, which is for language-modelling, not for classification" in done.output
    assert "Unexpected" not in done.output
    assert not (tmp_path / "small").exists()


def test_debug_shows_the_error_itself() -> None:
    for arguments in (["--debug", "inspect", "/no/such"], ["inspect", "/no/such", "--debug"]):
        assert isinstance(run(*arguments).exception, hc.HeadcountError)


def test_narrow_terminal(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    done = run("inspect", model)
    assert done.exit_code == 0
    assert max(map(len, done.output.splitlines())) <= max(50, len(model) + 60)
    assert "encoder.0" in done.output
