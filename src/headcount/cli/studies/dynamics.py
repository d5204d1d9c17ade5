"""headcount study dynamics: when in training heads become dispensable."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from headcount.cli import data, options


@click.command("dynamics")
@options.loading
@data.tasked(split="dev", measured=True)
@click.option("--epochs", help="Epochs to measure, such as 1,2,5,10. Default: all.")
@click.option("--order", default="gradient", show_default=True, help="Score to rank heads by.")
@options.percent("--step", 10.0)
@options.output
def COMMAND(
    model: str,
    loading: options.Loading,
    work: data.Workload,
    epochs: str | None,
    order: str,
    step: float,
    output: options.Output,
) -> None:
    """Prune the model of every epoch of a training run in MODEL (Michel et al. 2019, section 6)."""
    from headcount.cli import show
    from headcount.studies.dynamics import dynamics, epochs_of

    checkpoints = epochs_of(Path(model), options.numbers(epochs, "--epochs") or None)
    earliest = str(next(iter(checkpoints.values())))
    with show.working("Reading the data"):
        task, measure_on = work.both(earliest, loading)
    with show.Bars() as bars:
        record = dynamics(
            checkpoints, lambda folder: loading.load(str(folder), task=work.task), task,
            measure_on=measure_on, order=order, step=step / 100, name=model, progress=bars.show,
        )  # fmt: skip
    output.present(record, f"headcount study curves {shlex.quote(model)} {work.as_options()} --out DIR")
