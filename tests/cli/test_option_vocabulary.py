"""One vocabulary: an option of one name means the same in every command that has it."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from headcount.cli.commands.study import STUDIES
from headcount.cli.main import commands

SHARED = (
    "--split", "--measure-split", "--other-split", "--limit", "--max-length", "--batch-size", "--device", "--dtype",
    "--device-map", "--revision", "--text-column", "--label", "--pair", "--lowercase",
)  # fmt: skip
REPLACED = ("--model", "--from", "--other", "--sentences", "--choose-on", "--measure-on")
WITHOUT_MODEL = ("train", "demo", "push", "report", "figure", "study")  # accelerate places what is trained


def every_command() -> Iterator[tuple[str, click.Command]]:
    yield from commands.items()
    yield from ((f"study {name}", command) for name, command in STUDIES.items())


def options(command: click.Command) -> dict[str, click.Option]:
    return {
        name: parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    }


@pytest.mark.parametrize("name", SHARED)
def test_an_option_means_the_same_everywhere(name: str) -> None:
    meanings = {
        command: (option.help, option.type.to_info_dict())
        for command, parsed in every_command()
        if (option := options(parsed).get(name)) is not None
        and not (name == "--lowercase" and command == "train")  # there it is of the model that is made
    }
    assert len(meanings) > 1
    assert all(meaning == next(iter(meanings.values())) for meaning in meanings.values()), meanings


def test_text_is_a_sentence_and_plain_a_report() -> None:
    having = {
        option: {name for name, command in every_command() if option in options(command)}
        for option in (
            "--text",
            "--plain",
            "--model",
            "--from",
            "--other",
            "--sentences",
            "--choose-on",
            "--measure-on",
        )
    }
    assert having.pop("--text") == {"attention", "explore"}
    assert having.pop("--plain") == {"report"}
    assert not any(having.values()), having


def test_a_model_is_positional_and_goes_to_a_device() -> None:
    for name, command in every_command():
        if name in WITHOUT_MODEL:
            continue
        arguments = [parameter.name for parameter in command.params if isinstance(parameter, click.Argument)]
        assert arguments[0] in ("model", "models"), name
        assert {"--device", "--device-map", "--dtype"} <= set(options(command)), name


def test_whatever_prints_tables_of_heads_can_print_them_whole() -> None:
    """The others print no tables of heads: files, answers, translations, or the ledger of a whole study."""
    ledgers = {"demo", "study all", "study michel2019", "study voita2019"}
    others = {"explore", "export", "figure", "push", "study", "translate"}
    without = {name for name, command in every_command() if "--all" not in options(command)}
    assert without == ledgers | others


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_no_number_is_nan_or_infinite(value: str) -> None:
    """nan is within every range of click, because no comparison with it is true."""
    numbers = [
        (command, name, option.type)
        for command, parsed in every_command()
        for name, option in options(parsed).items()
        if isinstance(option.type, click.types.FloatParamType)
    ]
    assert len(numbers) > 10
    for command, name, type_ in numbers:
        with pytest.raises(click.BadParameter):
            pytest.fail(f"{command} {name} takes {type_.convert(value, None, None)}")
