"""Options that several commands share, and how they are carried out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from headcount.studies.source import Loading as Loading

Command = Callable[..., Any]
FOLDER = click.Path(file_okay=False, path_type=Path)
figure_formats = click.option(
    "--format",
    "formats",
    multiple=True,
    default=["png", "svg", "pdf"],
    show_default=True,
    type=click.Choice(["png", "svg", "pdf"]),
    help="Of figures; may be given several times.",
)


@dataclass(frozen=True)
class Output:
    """Where results go: nowhere, or a folder with record.json and figures."""

    out: Path | None
    formats: tuple[str, ...]

    @property
    def unfinished(self) -> Path | None:
        """Where work is kept that the same command goes on with."""
        return self.out / "unfinished" if self.out else None

    def save(self, record: Any) -> None:
        """Write the record and its figures; of several processes one does."""
        from headcount import processes
        from headcount.report.figure import write_all

        if self.out is None or self.unfinished is None or not processes.is_main():
            return
        record.save(self.out / "record.json")
        write_all(record, self.out / "figures", self.formats)
        shutil.rmtree(self.unfinished, ignore_errors=True)

    def present(self, record: Any, as_json: bool, draw: Callable[[Any], None]) -> None:
        """Save a record and show it: as JSON, or drawn on a console, with where its numbers are."""
        from headcount.cli import show

        self.save(record)
        console = show.console()
        if as_json:
            show.json(console, record)
            return
        draw(console)
        show.line(console, f"\n{record.signature}", dim=True)
        if self.out:
            show.line(console, f"Every number: {self.out / 'record.json'}; figures: {self.out / 'figures'}", dim=True)


def output(function: Command) -> Command:
    """The options --out and --format, given to the command as `output`."""

    @wraps(function)
    def command(out: Path | None, formats: tuple[str, ...], **rest: Any) -> Any:
        return function(output=Output(out, formats), **rest)

    return figure_formats(click.option("--out", type=FOLDER, help="Folder for record.json and figures.")(command))


def loading(function: Command) -> Command:
    """The argument MODEL and the options for loading it, given to the command as `how`."""

    @wraps(function)
    def command(
        dtype: str | None, device: str | None, revision: str | None, trust_remote_code: bool, **rest: Any
    ) -> Any:
        return function(how=Loading(dtype, revision, trust_remote_code, device), **rest)

    for decorate in (
        click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model. Look at it first."),
        click.option("--revision", help="Branch, tag or commit of a hub model."),
        click.option(
            "--dtype", type=click.Choice(["float32", "float16", "bfloat16"]), help="Number format of the weights."
        ),
        click.option("--device", help="Where the model runs: cpu, cuda, cuda:1, mps; cpu if not given."),
        click.argument("model"),
    ):
        command = decorate(command)
    return command


def refuse(names: Iterable[str], why: str) -> None:
    """An option that was given and would do nothing is an error."""
    context = click.get_current_context()
    spelled = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in names:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{spelled[name]} {why}.")


length = click.option(
    "--length",
    default=128,
    show_default=True,
    type=click.IntRange(1),
    help="Tokens of the example for FLOPs and cache.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
