"""Options that say which data a command runs on, and how they are carried out."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from headcount.registry import Registry
from headcount.studies.source import ParallelText as ParallelText
from headcount.studies.source import TaskText as TaskText

Command = Callable[..., Any]
# The same folder as in tasks/task.py, listed here without importing torch for --help.
TASKS: Registry[Any] = Registry("task", "headcount.tasks", "TASK")
_PARALLEL = "grammar[:LANGUAGE[:DOMAIN]], a folder with train/dev/test.LANG, .tsv, .jsonl, or hf:NAME[:CONFIG]"

HELD_OUT = "test if not given, and half of the texts where there is none"
_METRICS = "bleu, loss, perplexity, accuracy, f1, matthews: the task's usual one if not given."


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


def tasked(
    split: str, *, required: bool = True, inferred: bool = False, measured: str | None = None, beams: int = 1
) -> Callable[[Command], Command]:
    """The task and its data, given to the command as `work`; split: which part of the data by default.

    required: whether the command needs a task; otherwise `work` is None without one.
    inferred: whether the command finds the task of a model by itself; the task of `work` is then empty if not given.
    beams: of translation, by default.
    measured: where it may measure on another split than it chooses heads on, which one it takes if not told.
    """

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(
            task: str | None,
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
            work = TaskText(
                task or "", parallel_text, split, limit, batch_size, max_length, fields, quality, measure_split
            )
            return function(work=work if (task or inferred) and data else None, **rest)

        for option in (
            *([_measure_split(measured)] if measured else []),
            click.option("--metric", help=_METRICS),
            click.option("--lowercase", is_flag=True, help="Compare without regard to case (translation)."),
            click.option(
                "--beams", default=beams, show_default=True, type=click.IntRange(1), help="1 is greedy (translation)."
            ),
            click.option("--pair", help="Column with the second text (classification)."),
            click.option("--label", help="Column with the label (classification)."),
            click.option("--text", help="Column with the text (classification, language modelling)."),
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
            click.option(
                "--task",
                required=required and not inferred,
                type=click.Choice(TASKS.names()),
                help="What the model does" + ("; what its class says if not given." if inferred else "."),
            ),
        ):
            command = option(command)
        return command

    return decorate


def _measure_split(usual: str) -> Callable[[Command], Command]:
    joined = "several of parallel text joined by +, such as test+test2017"
    return click.option("--measure-split", help=f"Part of the data to measure on, or {joined}; {usual}.")


def _parallel_text(data: str, languages: str | None, columns: str | None, longest: int) -> ParallelText:
    return ParallelText(data, _pair(languages), _pair(columns), longest)


def _pair(text: str | None) -> tuple[str, ...] | None:
    return tuple(part.strip() for part in text.split(",")) if text else None
