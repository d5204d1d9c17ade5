"""headcount study rules: agreement of the rules of relevance about which heads matter."""

from __future__ import annotations

import shlex

import click

from headcount.cli import data, options


@click.command("rules")
@options.loading
@data.tasked(split="dev")
@options.choice(
    "--target", ["own", "reference"], "Decoder input while tracing relevance: the model's own output or the reference.",
    "own",
)  # fmt: skip
@options.output
def COMMAND(model: str, loading: options.Loading, work: data.Workload, target: str, output: options.Output) -> None:
    """Score every head of MODEL by every rule of relevance, and correlate their ranks."""
    from headcount.cli import show
    from headcount.studies.rules import compare_rules

    with show.working(f"Loading {model}"):
        task = work.build(model, loading)
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        record = compare_rules(live, task, name=model, target=target, progress=bars.show)
    output.present(record, f"headcount score {shlex.quote(model)} --method relevance --rule ding ...")
