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
@options.choice("--method", _METHODS.names(), "How heads are scored.", "gradient")
@data.tasked(split="dev")
@options.choice(
    "--granularity",
    ["example", "token", "batch"],
    "Take absolute values per token, example or batch (gradient). Default: example.",
)
@click.option(
    "--normalize/--no-normalize", default=None, help="Divide by the norm of each layer. Default: as the method does."
)
@click.option(
    "--preset", help="Exact variant: michel2019-paper, michel2019-code or hf-bertology (gradient). Default: none."
)
@options.choice("--rule", _RULES.names(), "Rule by which relevance is passed back (relevance). Default: ding.")
@options.choice(
    "--bias",
    ["absorb", "redistribute"],
    "Whether biases absorb relevance or it is redistributed (relevance). Default: absorb.",
)
@options.choice(
    "--target",
    ["own", "reference"],
    "Decoder input while tracing relevance: the model's own output or the reference (relevance). Default: own.",
)
@options.integer("--chunk", "Most padded tokens in one pass; bounds the memory (relevance). Default: 1024.")
@options.output
def COMMAND(
    model: str, method: str, work: data.Workload, output: options.Output, loading: options.Loading, **settings: Any
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
    output.present(record, f"headcount prune {shlex.quote(model)} --remove {','.join(worst)} --out DIR")
