"""Options that several commands share, and their implementation."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.checkpoints.loading import Loading as Loading
from headcount.cli import unfinished
from headcount.corpora.source import default_split
from headcount.registry import Registry

if TYPE_CHECKING:
    from headcount.record import Record, Signature

Command = Callable[..., Any]
FOLDER = click.Path(file_okay=False, path_type=Path)


class Real(click.FloatRange):
    """A number within a range; click itself accepts nan and inf as numbers of any range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        """For --help; click itself describes a range without ends as x<=None."""
        return "" if self.min is None and self.max is None else super()._describe_range()


def stacked(function: Command, options: Iterable[Command]) -> Command:
    """A command with options, the last one first in --help."""
    for option in options:
        function = option(function)
    return function


def integer(flag: str, about: str, default: int | None = None, *, least: int = 1) -> Command:
    """An option for a whole number."""
    return click.option(flag, default=default, show_default=True, type=click.IntRange(least), help=about)


def percent(flag: str, default: float) -> Command:
    """An option for a share of the heads."""
    within = Real(0, 100, min_open=True)
    return click.option(flag, default=default, show_default=True, type=within, help="Percent.")


def choice(flag: str, choices: Iterable[str], about: str, default: str | None = None) -> Command:
    """An option for one of several names."""
    return click.option(flag, default=default, show_default=True, type=click.Choice(tuple(choices)), help=about)


def toggle(flags: str, about: str) -> Command:
    """An option that is on by default; flags: --name/--no-name."""
    return click.option(flags, default=True, show_default=True, help=about)


figure_formats = click.option(
    "--format", "formats", multiple=True, default=["png", "svg", "pdf"], show_default=True,
    type=click.Choice(["png", "svg", "pdf"]), help="Format of figures; may be repeated.",
)  # fmt: skip
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
every_row = click.option("--all", "all_rows", is_flag=True, help="Print every head instead of the first and last ten.")


@dataclass(frozen=True)
class Output:
    """Where results go, nowhere or a folder with record.json and figures, and how they are printed."""

    out: Path | None
    formats: tuple[str, ...]
    all_rows: bool  # print every row of tables of many heads
    as_json: bool
    study: str  # name of the command

    @property
    def unfinished(self) -> Path | None:
        """Folder of unfinished work, from which the same command resumes."""
        return self.out / unfinished.NAME if self.out else None

    def finished(self, signature: Signature, complete: Callable[[Record], bool]) -> Record | None:
        """The record of an earlier run with the same model, data, settings and versions; None if there is none.

        complete: whether the other files of the result are there too.
        """
        from headcount import processes
        from headcount.record.model_folder import folder_record

        earlier = folder_record(str(self.out), self.study) if self.out and processes.is_main() else None
        if earlier:
            arguments = {name: value for name, value in earlier.signature.arguments.items() if name != "data"}  # a path
            same = replace(earlier.signature, time=signature.time, arguments=arguments) == signature
            earlier = earlier if same and complete(earlier) else None
        return processes.gather(earlier)[0]  # as the main process finds it

    def save(self, record: Record) -> list[Path]:
        """Write the record and its figures (main process only); returns the files of the figures."""
        from headcount import processes
        from headcount.report.figure import remove_outdated, write_all

        if self.out is None or self.unfinished is None or not processes.is_main():
            return []
        remove_outdated(self.out / "figures", self.out / "record.json", record)
        record.save(self.out / "record.json")
        figures = write_all(record, self.out / "figures", self.formats)
        unfinished.remove_unfinished(self.unfinished, record)
        return figures

    def present(self, record: Record, command: str = "") -> None:
        """Save a record and print it, with the paths of its files. command: the next useful command, to print."""
        parameters = click.get_current_context().params
        path, split = parameters.get("data") or "", parameters.get("split") or ""
        record = record.on_data(path, default_split(path, split))  # a file has no split
        figures = self.save(record)
        files = [written(self.out, figures=bool(figures))] if self.out else []
        self.show(record, hints=[*files, *([f"Next: {command}"] if command else [])])

    def show(self, record: Record, *, note: str = "", hints: Iterable[str] = ()) -> None:
        """Print a record without saving it."""
        from headcount.cli import show

        show.result(record, as_json=self.as_json, all_rows=self.all_rows, note=note, hints=hints)


def written(out: Path, *, figures: bool) -> str:
    """A line about the files that a command has written."""
    return f"Every number: {out / 'record.json'}" + (f"; figures: {out / 'figures'}" if figures else "")


@contextlib.contextmanager
def reserved(out: Path | None, *, shared: bool = False) -> Iterator[None]:
    """Lock a folder for results. Raises before any work if it cannot be written.

    shared: processes started with the same command share the work. In a distributed run the main process reserves it.
    """
    from headcount import journal, processes
    from headcount.errors import FolderError

    if out is None or not processes.is_main():
        yield
        return
    with journal.reserved(out, shared=shared):
        for name, wrong in (("record.json", Path.is_dir), ("figures", Path.is_file), (unfinished.NAME, Path.is_file)):
            if wrong(out / name):
                raise FolderError(
                    f"{out / name} exists and would be overwritten by the results; move it, or give another folder."
                )
        yield


def out_folder(about: str, *, shared: bool = False, **settings: Any) -> Callable[[Command], Command]:
    """The option --out: a folder that the command locks while it runs, or shares."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(out: Path | None, **rest: Any) -> Any:
            with reserved(out, shared=shared):
                return function(out=out, **rest)

        return click.option("--out", type=FOLDER, help=about, **settings)(command)

    return decorate


def output(function: Command, *, shared: bool = False) -> Command:
    """The options --out, --format, --all and --json, given to the command as `output`."""

    @wraps(function)
    def command(out: Path | None, formats: tuple[str, ...], all_rows: bool, as_json: bool, **rest: Any) -> Any:
        study = click.get_current_context().info_name or ""
        refuse_checkpoint(out)
        refuse_other_results(out, study, rest.get("model") or " ".join(rest.get("models", ())))
        output = Output(out, formats, all_rows, as_json, study)
        with _resuming(output):
            return function(output=output, **rest)

    saved = out_folder("Folder for record.json and figures. Default: nothing is saved.", shared=shared)
    return every_row(figure_formats(saved(as_json(command))))


@contextlib.contextmanager
def _resuming(output: Output) -> Iterator[None]:
    """Hold the folder of unfinished work. Raises before any work if it has something else."""
    if output.unfinished is None:
        yield
        return
    unfinished.check_unfinished(output.unfinished, output.study)
    with unfinished.noted(output.unfinished, output.study):
        yield


def refuse_checkpoint(out: Path | None) -> None:
    """Raise if the folder is that of a model, whose record the results would replace."""
    from headcount.errors import FolderError

    if out is not None and (out / "config.json").is_file():
        raise FolderError(f"{out} holds a model, whose record.json would be replaced; give another folder for results.")


def refuse_other_results(out: Path | None, study: str, model: str | None = None) -> None:
    """Raise if the folder has the record of another command or model, or a record.json that headcount did not write."""
    from headcount import journal
    from headcount.errors import FolderError, HeadcountError

    file = out / "record.json" if out is not None else None
    if file is None or not file.is_file():
        return
    try:
        content = journal.read_json(file)
    except HeadcountError:
        content = None
    recorded = content.get("study") if isinstance(content, dict) else None
    if recorded != study:
        what = f"is the result of {recorded!r:.40}" if recorded else "is not a record of headcount"
        raise FolderError(f"{file} {what}, which that of {study!r} would replace; move it, or give another folder.")
    measured = str((content.get("signature") or {}).get("model", ""))
    if model and measured and Path(measured).resolve() != Path(model).resolve():
        raise FolderError(
            f"{file} is the result of {study!r} on {measured}, which that on {model} would replace; move it, or give "
            "another folder."
        )


def shared_output(function: Command) -> Command:
    """The same for a command whose work several processes share."""
    return output(function, shared=True)


def read_records(paths: Iterable[Path]) -> list[Any]:
    """Records by their files, or the folders that hold them."""
    from headcount.record import Record

    return [Record.load(path / "record.json" if path.is_dir() else path) for path in paths]


# The same folder as in exports/export.py, listed here without importing torch for --help.
RUNTIMES: Registry[Any] = Registry("runtime", "headcount.exports", "RUNTIME")


def _named(context: click.Context, parameter: click.Parameter, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Folders that are given as . or .. by their path: records and reports are headed by its last part."""
    for folder in (value,) if isinstance(value, str) else value:
        if not folder.strip():
            name = parameter.make_metavar(context).strip("[].")
            raise click.UsageError(f"{name} is empty: give the folder of a model, such as . for this one, or its id.")
    return _by_path(value) if isinstance(value, str) else tuple(map(_by_path, value))


def _by_path(folder: str) -> str:
    return os.path.abspath(folder) if Path(folder).name in ("", "..") else folder  # keeps links


def model_argument(name: str, **settings: Any) -> Command:
    """An argument for a model, or for several with nargs=-1: folders and hub ids."""
    return click.argument(name, callback=_named, **settings)


model = model_argument("model")
_LOADING = (
    click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model. Look at it first."),
    click.option("--revision", help="Branch, tag or commit of a hub model. Default: main."),
    click.option(
        "--device-map",
        metavar="auto|JSON",
        help="Spread the model over devices, memory and disk as accelerate does; instead of --device. Default: no.",
    ),
    choice("--dtype", ["float32", "float16", "bfloat16"], "Data type of the weights. Default: that of the checkpoint."),
    click.option(
        "--device", help="Device to run on: cpu, cuda, cuda:1, mps. Default: the accelerator that is found, else cpu."
    ),
)


def loading_only(function: Command) -> Command:
    """The options for loading a model, given to the command as `loading`."""

    @wraps(function)
    def command(
        dtype: str | None,
        device: str | None,
        device_map: str | None,
        revision: str | None,
        trust_remote_code: bool,
        **arguments: Any,
    ) -> Any:
        return function(loading=Loading(dtype, revision, trust_remote_code, device, device_map), **arguments)

    return stacked(command, _LOADING)


def loading(function: Command) -> Command:
    """The argument MODEL and the options for loading it, given to the command as `model` and `loading`."""
    return model(loading_only(function))


def refuse(names: Iterable[str], why: str) -> None:
    """Raise if one of these options was given, because it would do nothing."""
    spelled = {parameter.name: parameter.opts[0] for parameter in click.get_current_context().command.params}
    for name in filter(is_typed, names):
        raise click.UsageError(f"{spelled[name]} {why}.")


def is_typed(name: str) -> bool:
    """Whether an option of the running command was given on the command line."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def split(default: str | None) -> Command:
    """The option --split: the split to read, or to choose heads on."""
    return click.option("--split", default=default, show_default=True, help="Split of the data to use.")


_JOINED = "several of parallel text joined by +, such as test+test2017"
measure_split = click.option(
    "--measure-split",
    help=f"Split to measure on, or {_JOINED}; half: half of --split. Default: test, or half if there is none.",
)
other_split = click.option(
    "--other-split", help="Second split, to test whether the same heads matter there. Default: none."
)


def limit(default: int | None = None) -> Command:
    return integer("--limit", "Use at most this many texts.", default)


def choose_limit(default: int | None = None) -> Command:
    return integer("--choose-limit", "Most texts to score heads on.", default)


gate_steps = integer("--steps", "Training steps with gates.", 150)
tune_steps = integer("--tune", "Fine-tuning steps after the gates.", 1050, least=0)
train_limit = integer("--train-limit", "Train on at most this many texts. Default: all.")
save_seconds = click.option(
    "--save-seconds", default=60.0, show_default=True, type=Real(0, min_open=True),
    help="Seconds between saved training states.",
)  # fmt: skip
max_length = integer("--max-length", "Truncate texts to this many tokens.", 256, least=2)
batch_size = integer("--batch-size", "Texts in a batch.", 16)


def seed(what: str, default: int | None = 0) -> Command:
    return integer("--seed", f"Random seed of {what}.", default, least=0)


def names(text: str | None) -> tuple[str, ...]:
    """The items of a comma-separated list; none if nothing was given."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def numbers(text: str | None, option: str) -> tuple[int, ...]:
    """The integers of a comma-separated list, which may have ranges such as 0-4."""
    try:
        return tuple(number for part in names(text) for number in _range(part))
    except ValueError as error:
        raise click.UsageError(f"{option}: expected whole numbers such as 1,4,16 or 0-4; got {text}.") from error


def _range(text: str) -> range:
    """The integers of a range such as 0-4, or a single integer. Raises for a falling range."""
    start, dash, end = text.partition("-")
    if not start or not dash:
        return range(int(text), int(text) + 1)
    if int(end) < int(start):
        raise ValueError(f"{text} is a descending range")
    return range(int(start), int(end) + 1)


length = integer("--length", "Example length in tokens, for FLOPs and cache.", 128)
