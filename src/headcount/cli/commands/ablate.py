"""headcount ablate: the loss of quality without each head, with statistics."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import data, options


@click.command("ablate")
@options.loading
@data.tasked(split="test")
@click.option("--other-data", help="Second data set, to test whether the same heads matter there. Default: none.")
@options.other_split
@options.toggle("--alone/--no-alone", "Also mask all heads of a layer but one, for each head.")
@click.option("--early", is_flag=True, help="Stop measuring a head once it is significant at --alpha (accuracy only).")
@click.option(
    "--alpha", default=0.01, show_default=True, type=options.Real(0, 1, min_open=True, max_open=True),
    help="Significance level: a head matters if the p-value of its loss is below it.",
)  # fmt: skip
@options.output
def COMMAND(
    model: str,
    loading: options.Loading,
    work: data.Workload,
    other_data: str | None,
    other_split: str | None,
    output: options.Output,
    **settings: Any,
) -> None:
    """Mask every head of MODEL alone and measure the loss of quality; then mask all other heads of its layer."""
    from headcount.checkpoints.chosen_on import read_chosen_on
    from headcount.cli import show
    from headcount.studies.ablation import ablate

    with show.working(f"Loading {model}"):
        task = work.build(model, loading)
        other = work.on(other_split, data=other_data) if other_data or other_split else None
        other_task = other.build(model, loading) if other else None
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        record = ablate(
            live, task, name=model, other=other_task, chosen_on=read_chosen_on(model, loading.revision),
            folder=output.unfinished, progress=bars.show, **settings,
        )  # fmt: skip
    effects = record.parts.one_out
    least = sorted(effects, key=lambda head: abs(effects[head].difference))[:3]
    output.present(record, f"headcount prune {shlex.quote(model)} --remove {','.join(least)} --out DIR")
