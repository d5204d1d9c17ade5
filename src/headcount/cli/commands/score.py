"""headcount score: how much every head of a model is worth on your data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from headcount.cli import options
from headcount.registry import Registry

# The same folders as in scores/score.py and tasks/task.py, listed here without importing torch for --help.
_METHODS: Registry[Any] = Registry("score", "headcount.scores", "SCORE", besides=("score",))
_TASKS: Registry[Any] = Registry("task", "headcount.tasks", "TASK", besides=("task",))


@click.command("score")
@options.loading
@click.option("--method", default="gradient", show_default=True, type=click.Choice(_METHODS.names()))
@click.option("--task", required=True, type=click.Choice(_TASKS.names()), help="What the model does with the data.")
@click.option(
    "--data", required=True, type=click.Path(path_type=Path), help="Texts: .tsv or .jsonl with labels, or lines."
)
@click.option("--text", help="Column with the text (classification).")
@click.option("--label", help="Column with the label (classification).")
@click.option("--pair", help="Column with the second text (classification).")
@click.option(
    "--granularity", type=click.Choice(["example", "token", "batch"]), help="Where absolute values are taken."
)
@click.option("--normalize/--no-normalize", default=None, help="Divide by the norm of each layer.")
@click.option("--limit", type=click.IntRange(1), help="Use so many texts at most.")
@click.option("--batch-size", default=16, show_default=True, type=click.IntRange(1))
@click.option(
    "--max-length", default=256, show_default=True, type=click.IntRange(2), help="Cut texts to so many tokens."
)
@click.option("--out", type=options.FOLDER, help="Folder to write record.json to.")
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    method: str,
    task: str,
    out: Path | None,
    as_json: bool,
    how: options.Loading,
    granularity: str | None,
    normalize: bool | None,
    **data: Any,
) -> None:
    """Score every head of MODEL on your data; higher means more worth keeping."""
    from headcount.cli import show
    from headcount.studies.scoring import scoring

    asked = {"granularity": granularity, "normalize": normalize}
    with show.working(f"Loading {model}"):
        work = _task(task, model, how, **data)  # wrong data is said before a large model is loaded
        live = how.load(model, task=task)
    with show.working(f"Scoring heads by {method}"):
        given = {name: value for name, value in asked.items() if value is not None}
        record = scoring(live, work, method=method, name=model, **given)
    if out:
        record.save(out / "record.json")
    if as_json:
        click.echo(record.to_json())
    else:
        _show(model, record)


def _task(
    name: str,
    model: str,
    how: options.Loading,
    *,
    data: Path,
    text: str | None,
    label: str | None,
    pair: str | None,
    limit: int | None,
    batch_size: int,
    max_length: int,
) -> Any:
    from headcount.corpora.labelled import read_labelled
    from headcount.corpora.plain import read_plain
    from headcount.tasks.task import task

    common = {"tokenizer": how.tokenizer(model), "batch_size": batch_size, "max_length": max_length}
    if name == "language-modelling":
        return task(name, texts=read_plain(data, limit=limit), **common)
    found = read_labelled(data, text=text, label=label, pair=pair, limit=limit)
    return task(name, texts=found.texts, labels=found.labels, pairs=found.pairs, **common)


def _show(name: str, record: Any) -> None:
    from headcount.cli import show

    console, parts = show.console(), record.parts
    show.title(console, name, f"{parts['method']} score of {len(parts['scores'])} heads, higher = keep")
    console.print(show.head_table(parts["scores"]))
    worst = sorted(parts["scores"], key=lambda head: parts["scores"][head])[:5]
    show.line(console, f"\n{record.signature}", dim=True)
    show.line(console, f"Next: headcount prune {shlex.quote(name)} --remove {','.join(worst)} --out DIR", dim=True)
