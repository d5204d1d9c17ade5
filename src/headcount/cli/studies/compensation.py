"""headcount study compensation: pruning without training, one compensation beside the other."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import data, options


@click.command("compensation")
@options.loading
@data.tasked(split="train", measured=True)
@click.option("--calibrate-data", help="Data to score, search and calibrate on, if not another part of --data.")
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
    loading: options.Loading,
    work: data.Workload,
    calibrate_data: str | None,
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
    from headcount.tasks.overlap import check_apart

    with show.working(f"Loading {model}"):
        calibrated, measured = work.parts(choose=work.on(data=calibrate_data).with_limit(calibrate_limit))
        task, measure_on = calibrated.build(model, loading), measured.build(model, loading)
        check_apart(task, measure_on)
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        record = study_compensation(
            live, task, measure_on, step=step / 100, most=most / 100, name=model, progress=bars.show, **settings
        )
    again = work.as_options()
    output.present(record, as_json, lambda console: _draw(console, model, record, again))


def _draw(console: Any, name: str, record: Any, again: str) -> None:
    from rich.table import Table

    from headcount.cli import show

    parts = record.parts
    full = parts["full"]
    show.measured(console, parts)
    show.title(console, name, f"{parts['metric']} {full['value']:.2f} with all {parts['heads']} heads")
    console.print("Negative log-likelihood of a held-out example above the full model's:\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("removed", *parts["compensations"]):
        table.add_column(column, justify="right", no_wrap=True)
    for place, point in enumerate(parts["compensations"]["none"]):
        cells = [f"{points[place]['value']:.3f}" for points in parts["compensations"].values()]
        table.add_row(f"{point['removed']} ({100 * point['share']:.0f}%)", *cells)
    console.print(table)
    found = parts["at"]
    if found["reached"]:
        lost = record.signature.arguments["points"]
        first = f"Without {found['removed']} heads the uncompensated model first loses {lost:g} {parts['metric']}"
        console.print(f"\n{first}. There:")
        for how, quality in found["quality"].items():
            console.print(f"  {how:7} {quality['value']:.3f} ({quality['low']:.3f} - {quality['high']:.3f})")
        for pair, value in found["ratios"].items():
            numbers = ["-" if number is None else f"{number:.2f}" for number in value.values()]
            console.print(f"  excess of {pair}: {numbers[0]} ({numbers[1]} - {numbers[2]})")
    show.line(
        console,
        f"Next: headcount prune {shlex.quote(name)} --choose greedy --keep N {again} --out DIR",
        dim=True,
    )
