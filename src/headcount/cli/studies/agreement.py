"""headcount study agreement: how well cheap scores agree with exact ablation."""

from __future__ import annotations

import shlex

import click

from headcount.cli import data, options


@click.command("agreement")
@options.loading
@data.tasked(split="dev", measured=True)
@click.option("--methods", help="Scores to compare, separated by commas. Default: all.")
@options.output
def COMMAND(
    model: str, loading: options.Loading, work: data.Workload, methods: str | None, output: options.Output
) -> None:
    """Score every head of MODEL by every method; compare the ranks with ablation, and the loss of pruning by each."""
    from headcount.cli import show
    from headcount.studies.agreement import METHODS, agreement

    names = options.names(methods) or METHODS
    with show.working(f"Loading {model}"):
        task, measure_on = work.both(model, loading)
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        record = agreement(
            live, task, measure_on=measure_on, methods=names, name=model, revision=loading.revision,
            folder=output.unfinished, progress=bars.show,
        )  # fmt: skip
    repeated = f"--orders gradient,ablation {work.as_options()} --out DIR"
    output.present(record, f"headcount study curves {shlex.quote(model)} {repeated}")
