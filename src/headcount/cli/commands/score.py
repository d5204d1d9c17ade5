"""headcount score: score the importance of every head on your data."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import data, options
from headcount.registry import Registry

# The same folder as in scores/score.py, listed here without importing torch for --help.
_METHODS: Registry[Any] = Registry("score", "headcount.scores", "SCORE")
_RULES: Registry[Any] = Registry("rule", "headcount.probes.relevance.rules", "RULE")


@click.command("score")
@options.loading
@click.option(
    "--method",
    default="gradient",
    show_default=True,
    type=click.Choice(_METHODS.names()),
    help="How heads are scored.",
)
@data.tasked(split="dev")
@click.option(
    "--granularity",
    type=click.Choice(["example", "token", "batch"]),
    help="Take absolute values per token, example or batch (gradient). Default: example.",
)
@click.option(
    "--normalize/--no-normalize", default=None, help="Divide by the norm of each layer. Default: as the method does."
)
@click.option(
    "--preset", help="Exact variant: michel2019-paper, michel2019-code or hf-bertology (gradient). Default: none."
)
@click.option(
    "--rule",
    type=click.Choice(_RULES.names()),
    help="Rule by which relevance is passed back (relevance). Default: ding.",
)
@click.option(
    "--bias",
    type=click.Choice(["absorb", "redistribute"]),
    help="Whether biases absorb relevance or it is redistributed (relevance). Default: absorb.",
)
@click.option(
    "--target",
    type=click.Choice(["own", "reference"]),
    help="Decoder input while tracing relevance: the model's own output or the reference (relevance). Default: own.",
)
@click.option(
    "--chunk",
    type=click.IntRange(1),
    help="Most padded tokens in one pass; bounds the memory (relevance). Default: 1024.",
)
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    method: str,
    work: data.Workload,
    output: options.Output,
    as_json: bool,
    loading: options.Loading,
    **settings: Any,
) -> None:
    """Score every head of MODEL on your data; higher means more important."""
    from headcount.cli import show
    from headcount.studies.scoring import scoring

    with show.working(f"Loading {model}"):
        task = work.build(model, loading)  # wrong data is reported before a large model is loaded
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        arguments = {name: value for name, value in settings.items() if value is not None}
        record = scoring(
            live, task, method=method, name=model, folder=output.unfinished, progress=bars.show, **arguments
        )
    scores = record.parts.scores
    worst = sorted(scores, key=lambda head: scores[head])[:5]
    output.present(record, as_json, f"headcount prune {shlex.quote(model)} --remove {','.join(worst)} --out DIR")
