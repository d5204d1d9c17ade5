"""Options for the data of a command: a source, and the task of the model on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from headcount.cli import options
from headcount.corpora.source import LONGEST, default_split
from headcount.corpora.source import Source as Source
from headcount.errors import UsageError
from headcount.registry import Registry
from headcount.studies.workload import Workload as Workload
from headcount.tasks.harness import HARNESS, is_harness, task_names

Command = Callable[..., Any]
# The same folder as in tasks/task.py, listed here without importing torch for --help.
TASKS: Registry[Any] = Registry("task", "headcount.tasks", "TASK")
NAMES = tuple(name for name in TASKS.names() if name != HARNESS)  # tasks with their own data
PARALLEL = "grammar[:LANGUAGE[:DOMAIN]], a folder with train/dev/test.LANG, .tsv, .jsonl, or hf:NAME[:CONFIG]"
SENTENCES = "Sentences: grammar[:LANGUAGE[:DOMAIN]], a treebank (.conllu), parallel text, or .txt with one per line"
ANY = f"Labelled text: .tsv, .jsonl; plain text: .txt; a folder of them by split; hf:NAME. Parallel text: {PARALLEL}"
_METRICS = "Metric: bleu, loss, perplexity, accuracy, f1 or matthews. Default: that of the task."
_COLUMNS = {"text": "text_column", "label": "label", "pair": "pair"}
_FIELDS = {
    "languages": click.option(
        "--languages",
        help="File extensions of the languages, SOURCE,TARGET: en,de (translation). Default: the only two.",
    ),
    "columns": click.option(
        "--columns",
        help="Columns with a pair of texts: SOURCE,TARGET (translation). Default: the languages, or source,target.",
    ),
    "longest": options.integer("--longest", "Skip sentences with more words than this (translation).", LONGEST),
    "limit": options.limit(),
    "text_column": click.option(
        "--text-column",
        help="Column with the text (classification, language modelling). Default: text, sentence or content.",
    ),
    "label": click.option("--label", help="Column with the label (classification). Default: label, labels or class."),
    "pair": click.option("--pair", help="Column with the second text (classification). Default: none."),
    "lowercase": click.option("--lowercase", is_flag=True, help="Ignore case in BLEU (translation)."),
}


def source(
    about: str, *, split: str | None = None, required: bool = True, fields: Iterable[str] = tuple(_FIELDS)
) -> Callable[[Command], Command]:
    """Options of the data, passed to the command as `source`; its data is empty without --data.

    split: default split; without it the command has no --split. fields: further options.
    """
    fields = tuple(fields)
    decorators = [*(_FIELDS[name] for name in reversed(fields)), *([options.split(split)] if split else [])]
    decorators.append(click.option("--data", required=required, help=f"{about}."))

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(data: str | None, **arguments: Any) -> Any:
            values = {name: arguments.pop(name) for name in fields}
            split_name = arguments.pop("split") if split else None
            if data and split_name and options.is_typed("split"):
                _check_split(data, split_name)
            elif data and split_name:
                split_name = default_split(data, split_name)
            return function(source=_source(data or "", split_name, values), **arguments)

        return options.stacked(command, decorators)

    return decorate


def _check_split(data: str, split: str) -> None:
    """Raise if a split of a single file is named: all of the file would be read. Its own name means all of it."""
    if default_split(data, split) is None and split != Path(data).stem:
        raise click.UsageError(
            f"--split {split}: {data} is a single file, which has no splits and is read as a whole. Leave out --split, "
            "or give a folder with a file for each split."
        )


def _source(data: str, split: str | None, values: dict[str, Any]) -> Source:
    """A source from the options of a command line."""
    columns = {name: values.pop(option, None) for name, option in _COLUMNS.items()}
    pair = options.names(values.pop("columns", None))
    if pair and len(pair) != 2:
        raise click.UsageError(f"--columns takes two names, source first; got {', '.join(pair)}.")
    columns |= dict(zip(("source", "target"), pair, strict=False))
    return Source(
        data,
        split,
        columns={name: column for name, column in columns.items() if column},
        languages=options.names(values.pop("languages", None)),
        **values,
    )


class TaskName(click.Choice[str]):
    """A task, or lm-eval:TASK[,TASK] if the command allows it."""

    def __init__(self, *, harness: bool) -> None:
        super().__init__(NAMES)
        self.harness = harness

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not is_harness(str(value)):
            return super().convert(value, param, ctx)
        if not self.harness:
            self.fail(
                f"{value}: the harness measures models, with evaluate --task or prune --measure-task.", param, ctx
            )
        return str(value)


def inferred_task(model: str, loading: options.Loading) -> str:
    """The task of a model according to its class, where --task is not given."""
    objective = loading.objective(model)
    if objective.task is None:
        raise click.UsageError(
            f"The class of {model}, {objective.architecture or 'not named in its config'}, does not say what the model "
            f"does: give --task, one of {', '.join(NAMES)}."
        )
    return str(objective.task)


measure_task = click.option(
    "--measure-task", metavar="lm-eval:TASK[,TASK]", callback=lambda _ctx, _param, value: _measure_task(value),
    help="Measure quality by tasks of the lm-evaluation-harness instead; heads are chosen on --data. Default: --task.",
)  # fmt: skip


def _measure_task(value: str | None) -> Workload | None:
    if value is None:
        return None
    try:
        task_names(value)
    except UsageError as error:
        raise click.BadParameter(str(error)) from error
    return Workload(value, Source("", None))


def tasked(
    split: str,
    *,
    required: bool = True,
    inferred: bool = False,
    measured: bool = False,
    beams: int = 1,
    harness: bool = False,
) -> Callable[[Command], Command]:
    """Options of the task and its data, passed to the command as `work`. split: default split.

    required: whether the command needs a task; otherwise `work` is None without one.
    inferred: whether the command can infer the task from the model; the task of `work` may then be empty.
    measured: whether it measures on other texts than those that heads are chosen on.
    beams: default number of beams.
    harness: whether the task may be one of the lm-evaluation-harness, which needs no data.
    """
    decorators: tuple[Command, ...] = (
        *([options.measure_split] if measured else []),
        click.option("--metric", help=_METRICS),
        options.integer("--beams", "Beams of beam search; 1 is greedy decoding (translation).", beams),
        options.max_length,
        options.batch_size,
        source(ANY, split=split, required=required and not harness),
        click.option(
            "--task",
            required=required and not inferred,
            type=TaskName(harness=harness),
            help="Task of the model"
            + (". Default: inferred from its class" if inferred else "")
            + ("; or lm-eval:TASK[,TASK], tasks of the lm-evaluation-harness." if harness else "."),
        ),
    )

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(
            task: str | None,
            source: Source,
            batch_size: int,
            max_length: int,
            beams: int,
            metric: str | None,
            measure_split: str | None = None,
            **arguments: Any,
        ) -> Any:
            work, by_harness = None, is_harness(task)
            if harness and not by_harness and not source.data:
                raise click.UsageError("Missing option '--data'.")
            if not inferred and not by_harness and bool(task) != bool(source.data):
                option, missing = ("--task", "--data") if task else ("--data", "--task")
                raise click.UsageError(f"{option} does nothing without {missing}: give both, or neither.")
            if (task or inferred) and (source.data or by_harness):
                work = Workload(task or "", source, measure_split, batch_size, max_length, metric, {"beams": beams})
            return function(work=work, **arguments)

        return options.stacked(command, decorators)

    return decorate
