"""headcount study compensation: pruning without training, one compensation beside the other."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import click

from headcount.cli import data, options


@click.command("compensation")
@options.loading
@data.tasked(split="test")
@click.option("--calibrate-data", help="Data to score, search and calibrate on, if not another part of --data.")
@click.option("--calibrate-split", default="train", show_default=True, help="Part of the data to calibrate on.")
@click.option("--calibrate-limit", default=400, show_default=True, type=click.IntRange(1), help="Texts of it.")
@click.option("--order", default="gradient", show_default=True, help="Score whose order the masks follow.")
@click.option("--step", default=5.0, show_default=True, type=click.FloatRange(0, 100, min_open=True), help="Percent.")
@click.option("--most", default=60.0, show_default=True, type=click.FloatRange(0, 100, min_open=True), help="Percent.")
@click.option("--points", type=float, help="Loss of the metric at which ways are compared: 2 points if not given.")
@click.option("--greedy/--no-greedy", default=True, show_default=True, help="Also search, compensation in the loop.")
@click.option("--candidates", default=6, show_default=True, type=click.IntRange(1), help="Of each greedy step.")
@click.option("--group", default=1, show_default=True, type=click.IntRange(1), help="Heads of each greedy step.")
@click.option("--add-bias", is_flag=True, help="Give output projections without a bias one.")
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    how: options.Loading,
    work: data.TaskText,
    calibrate_data: str | None,
    calibrate_split: str,
    calibrate_limit: int,
    step: float,
    most: float,
    output: options.Output,
    as_json: bool,
    **settings: Any,
) -> None:
    """Remove ever more heads of MODEL without training, make up for them in every way, and compare what is lost."""
    from headcount.cli import show
    from headcount.studies.compensation import study_compensation
    from headcount.studies.held_out import check_apart

    with show.working(f"Loading {model}"):
        calibrated = replace(work.elsewhere(calibrate_data, calibrate_split), limit=calibrate_limit)
        task, measure_on = (part.build(model, how) for part in calibrated.halves(work))
        check_apart(task, measure_on)
        live = how.load(model, task=work.task)
    with show.Bars() as bars:
        record = study_compensation(
            live, task, measure_on, step=step / 100, most=most / 100, name=model, progress=bars.show, **settings
        )
    again = f"--method greedy --keep N {work.as_options()} --out DIR"
    output.present(record, as_json, f"headcount prune {shlex.quote(model)} {again}")
