"""Options that several commands share, and how they are carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]
FOLDER = click.Path(file_okay=False, path_type=Path)


@dataclass(frozen=True)
class Loading:
    """How MODEL is loaded."""

    dtype: str | None
    revision: str | None
    trust_remote_code: bool

    def load(self, model: str, *, task: str | None = None) -> Any:
        from headcount.checkpoints.load import load

        quiet()
        revision: dict[str, Any] = {"revision": self.revision} if self.revision else {}
        return load(model, task=task, dtype=self.dtype, trust_remote_code=self.trust_remote_code, **revision)

    def tokenizer(self, model: str) -> Any:
        from headcount.checkpoints.companions import load_tokenizer

        quiet()
        return load_tokenizer(model, revision=self.revision, trust_remote_code=self.trust_remote_code)


def loading(function: Command) -> Command:
    """The argument MODEL and the options for loading it, given to the command as `how`."""

    @wraps(function)
    def command(dtype: str | None, revision: str | None, trust_remote_code: bool, **rest: Any) -> Any:
        return function(how=Loading(dtype, revision, trust_remote_code), **rest)

    for decorate in (
        click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model. Look at it first."),
        click.option("--revision", help="Branch, tag or commit of a hub model."),
        click.option(
            "--dtype", type=click.Choice(["float32", "float16", "bfloat16"]), help="Number format of the weights."
        ),
        click.argument("model"),
    ):
        command = decorate(command)
    return command


length = click.option(
    "--length",
    default=128,
    show_default=True,
    type=click.IntRange(1),
    help="Tokens of the example for FLOPs and cache.",
)
DATA = "grammar[:LANGUAGE[:DOMAIN]], a folder with train/dev/test.LANG, a .tsv or .jsonl file, or hf:NAME[:CONFIG]."


def parallel(function: Command) -> Command:
    """Where parallel text comes from, given to the command as `text`."""

    @wraps(function)
    def command(data: str, languages: str | None, columns: str | None, longest: int, **rest: Any) -> Any:
        return function(text=ParallelText(data, _pair(languages), _pair(columns), longest), **rest)

    for decorate in (
        click.option(
            "--longest",
            default=250,
            show_default=True,
            type=click.IntRange(1),
            help="Words of a sentence; longer ones are left out.",
        ),
        click.option("--columns", help="Columns of a table with source and target: SOURCE,TARGET."),
        click.option("--languages", help="Endings of the files in a folder: SOURCE,TARGET, such as en,de."),
        click.option("--data", required=True, help=DATA),
    ):
        command = decorate(command)
    return command


@dataclass(frozen=True)
class ParallelText:
    """Where parallel text comes from."""

    data: str
    languages: tuple[str, ...] | None
    columns: tuple[str, ...] | None
    longest: int

    def read(self) -> Any:
        from headcount.corpora.parallel import read_parallel

        quiet()
        return read_parallel(self.data, languages=self.languages, columns=self.columns, longest=self.longest)


def _pair(text: str | None) -> tuple[str, ...] | None:
    return tuple(part.strip() for part in text.split(",")) if text else None


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def quiet() -> None:
    """Silence what transformers says on its way: the commands show what matters themselves."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
