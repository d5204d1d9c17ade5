"""Options that say which data a command runs on, and how they are carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import click

from headcount.cli import options
from headcount.registry import Registry

Command = Callable[..., Any]
# The same folder as in tasks/task.py, listed here without importing torch for --help.
TASKS: Registry[Any] = Registry("task", "headcount.tasks", "TASK")
_PARALLEL = "grammar[:LANGUAGE[:DOMAIN]], a folder with train/dev/test.LANG, .tsv, .jsonl, or hf:NAME[:CONFIG]"

_METRICS = "bleu, loss, perplexity; accuracy, f1, matthews. The task's usual one if not given."
_MEASURE_SPLIT = click.option(
    "--measure-split", help="Part of the data to measure on; the one heads are chosen on if not given."
)


@dataclass(frozen=True)
class ParallelText:
    """Where parallel text comes from."""

    data: str
    languages: tuple[str, ...] | None
    columns: tuple[str, ...] | None
    longest: int

    def read(self) -> Any:
        from headcount.corpora.parallel import read_parallel

        options.quiet()
        return read_parallel(self.data, languages=self.languages, columns=self.columns, longest=self.longest)

    def as_options(self) -> str:
        """The same again on a command line."""
        said = [f"--data {self.data}"]
        said += [f"--languages {','.join(self.languages)}"] if self.languages else []
        said += [f"--columns {','.join(self.columns)}"] if self.columns else []
        return " ".join(said)


_PARALLEL_OPTIONS = (
    click.option(
        "--longest",
        default=250,
        show_default=True,
        type=click.IntRange(1),
        help="Words of a sentence (translation); longer ones are left out.",
    ),
    click.option("--columns", help="Columns of a table with source and target: SOURCE,TARGET (translation)."),
    click.option("--languages", help="Endings of the files in a folder: SOURCE,TARGET, such as en,de (translation)."),
)


def parallel(function: Command) -> Command:
    """Where parallel text comes from, given to the command as `text`."""

    @wraps(function)
    def command(data: str, languages: str | None, columns: str | None, longest: int, **rest: Any) -> Any:
        return function(text=_parallel_text(data, languages, columns, longest), **rest)

    for decorate in (*_PARALLEL_OPTIONS, click.option("--data", required=True, help=f"{_PARALLEL}.")):
        command = decorate(command)
    return command


@dataclass(frozen=True)
class TaskText:
    """Which task a model does on which data."""

    task: str
    text: ParallelText
    split: str
    limit: int | None
    batch_size: int
    max_length: int
    fields: dict[str, str | None]  # columns of labelled text
    quality: dict[str, Any]  # how quality is measured
    measured: str | None = None  # split to measure on, where it is not the one heads are chosen on

    def both(self, model: str, how: options.Loading) -> tuple[Any, Any]:
        """The task to choose heads on, and the one to measure on; None where that is the same."""
        task = self.build(model, how)
        return task, self.elsewhere(None, self.measured).build(model, how) if self.measured else None

    def elsewhere(self, data: str | None, split: str | None) -> TaskText:
        """The same task on other data."""
        return replace(self, text=replace(self.text, data=data or self.text.data), split=split or self.split)

    def build(self, model: str, how: options.Loading, classes: tuple[str, ...] | None = None) -> Any:
        """The task, with the tokenizer of a model; classes: those of the model if not given."""
        from headcount.corpora.plain import read_plain
        from headcount.tasks.task import task

        tokenizer = how.tokenizer(model)
        if self.task == "translation":
            pairs = self.text.read()[self.split]
            rows = pairs.select(range(min(self.limit or len(pairs), len(pairs))))
            texts = {"source": list(rows["source"]), "target": list(rows["target"])}
            return task("translation", **texts, tokenizer=tokenizer, max_length=self.max_length, **self.quality)
        options.quiet()
        common = {"tokenizer": tokenizer, "batch_size": self.batch_size, "max_length": self.max_length}
        common |= {"metric": self.quality["metric"]} if "metric" in self.quality else {}
        if self.task == "language-modelling":
            plain = read_plain(self.text.data, split=self.split, text=self.fields["text"], limit=self.limit)
            return task(self.task, texts=plain, **common)
        found = self.labelled(classes or how.classes(model))
        return task(self.task, texts=found.texts, labels=found.labels, pairs=found.pairs, **common)

    def labelled(self, classes: tuple[str, ...] | None = None) -> Any:
        """Labelled text; classes: what the class numbers stand for, where a model knows already."""
        from headcount.corpora.labelled import read_labelled

        options.quiet()
        return read_labelled(self.text.data, split=self.split, classes=classes, limit=self.limit, **self.fields)


def tasked(split: str, *, required: bool = True, measured: bool = False) -> Callable[[Command], Command]:
    """The task and its data, given to the command as `work`; split: which part of the data by default.

    required: whether the command needs a task; otherwise `work` is None without one.
    measured: whether it may measure on another split than it chooses heads on.
    """

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(
            task: str,
            data: str,
            languages: str | None,
            columns: str | None,
            longest: int,
            split: str,
            limit: int | None,
            batch_size: int,
            max_length: int,
            text: str | None,
            label: str | None,
            pair: str | None,
            beams: int,
            lowercase: bool,
            metric: str | None,
            measure_split: str | None = None,
            **rest: Any,
        ) -> Any:
            parallel_text = _parallel_text(data, languages, columns, longest)
            fields = {"text": text, "label": label, "pair": pair}
            quality = {"beams": beams, "lowercase": lowercase, **({"metric": metric} if metric else {})}
            work = TaskText(task, parallel_text, split, limit, batch_size, max_length, fields, quality, measure_split)
            return function(work=work if task and data else None, **rest)

        for option in (
            *([_MEASURE_SPLIT] if measured else []),
            click.option("--metric", help=_METRICS),
            click.option("--lowercase", is_flag=True, help="Compare without regard to case (translation)."),
            click.option(
                "--beams", default=1, show_default=True, type=click.IntRange(1), help="1 is greedy (translation)."
            ),
            click.option("--pair", help="Column with the second text (classification)."),
            click.option("--label", help="Column with the label (classification)."),
            click.option("--text", help="Column with the text (classification)."),
            click.option(
                "--max-length",
                default=256,
                show_default=True,
                type=click.IntRange(2),
                help="Cut texts to so many tokens.",
            ),
            click.option("--batch-size", default=16, show_default=True, type=click.IntRange(1)),
            click.option("--limit", type=click.IntRange(1), help="Use so many texts at most."),
            click.option("--split", default=split, show_default=True, help="Part of the data, where it has several."),
            *_PARALLEL_OPTIONS,
            click.option(
                "--data",
                required=required,
                help=f"Labelled text: .tsv, .jsonl; plain text: .txt; a folder of them by split; hf:NAME. "
                f"Parallel text: {_PARALLEL}.",
            ),
            click.option("--task", required=required, type=click.Choice(TASKS.names()), help="What the model does."),
        ):
            command = option(command)
        return command

    return decorate


def _parallel_text(data: str, languages: str | None, columns: str | None, longest: int) -> ParallelText:
    return ParallelText(data, _pair(languages), _pair(columns), longest)


def _pair(text: str | None) -> tuple[str, ...] | None:
    return tuple(part.strip() for part in text.split(",")) if text else None
