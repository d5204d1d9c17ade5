"""headcount study compensation: pruning without training, by several compensations."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import data, options


@click.command("compensation")
@options.loading
@data.tasked(split="train", measured=True)
@click.option("--calibrate-data", help="Data to score, search and calibrate on. Default: a split of --data.")
@options.integer("--calibrate-limit", "Use at most this many calibration texts.", 400)
@click.option("--order", default="gradient", show_default=True, help="Score by which heads are removed.")
@options.percent("--step", 5.0)
@options.percent("--most", 60.0)
@click.option(
    "--points",
    type=options.Real(),
    help="Loss of the metric at which compensations are compared. Default: 2, or .02 for a metric between 0 and 1.",
)
@options.toggle("--greedy/--no-greedy", "Also run the greedy search with compensation in the loop.")
@options.integer("--candidates", "Heads to try at each greedy step.", 6)
@options.integer("--group", "Heads to remove at each greedy step.", 1)
@click.option("--add-bias", is_flag=True, help="Add a bias to output projections that have none.")
@options.output
def COMMAND(
    model: str,
    loading: options.Loading,
    work: data.Workload,
    calibrate_data: str | None,
    calibrate_limit: int,
    step: float,
    most: float,
    greedy: bool,
    candidates: int,
    group: int,
    output: options.Output,
    **settings: Any,
) -> None:
    """Remove more and more heads of MODEL without training and compare how well each compensation makes up for them."""
    from headcount.cli import show
    from headcount.studies.compensation import GreedySteps, study_compensation
    from headcount.tasks.overlap import check_apart

    with show.working(f"Loading {model}"):
        calibrated, measured = work.divide(choose=work.on(data=calibrate_data).with_limit(calibrate_limit))
        task, measure_on = calibrated.build(model, loading), measured.build(model, loading)
        check_apart(task, measure_on)
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        record = study_compensation(
            live, task, measure_on, step=step / 100, most=most / 100, name=model, revision=loading.revision,
            progress=bars.show, greedy=GreedySteps(candidates, group) if greedy else None, **settings,
        )  # fmt: skip
    repeated = f"--choose greedy --keep N {work.as_options()} --out DIR"
    output.present(record, f"headcount prune {shlex.quote(model)} {repeated}")
