"""headcount study curves: quality as heads are removed, by several orders and kinds."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import data, options


@click.command("curves")
@options.loading
@data.tasked(split="dev", measured=True)
@click.option(
    "--orders", default="gradient,ablation", show_default=True, help="Scores to rank heads by, separated by commas."
)
@click.option(
    "--random", default=5, show_default=True, type=click.IntRange(0), help="Number of random orders, as a control."
)
@click.option("--step", default=10.0, show_default=True, type=click.FloatRange(0, 100, min_open=True), help="Percent.")
@click.option("--upto", default=100.0, show_default=True, type=click.FloatRange(0, 100, min_open=True), help="Percent.")
@click.option(
    "--by-kind/--no-by-kind", default=True, show_default=True, help="Also prune each kind of attention alone."
)
@click.option("--recompute", is_flag=True, help="Score the remaining heads again after each step.")
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    loading: options.Loading,
    work: data.Workload,
    orders: str,
    step: float,
    upto: float,
    output: options.Output,
    as_json: bool,
    **plan: Any,
) -> None:
    """Prune MODEL step by step in several orders, and each kind of attention alone (Michel et al. 2019, section 4)."""
    from headcount.cli import show
    from headcount.studies.curves import CurvePlan, pruning_curves

    curve_plan = CurvePlan(orders=options.names(orders), step=step / 100, upto=upto / 100, **plan)
    with show.working(f"Loading {model}"):
        task, measure_on = work.both(model, loading)
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        record = pruning_curves(live, task, measure_on=measure_on, plan=curve_plan, name=model, progress=bars.show)
    repeated = f"--choose gradient --keep 70% {work.as_options()} --out DIR"
    output.present(record, as_json, f"headcount prune {shlex.quote(model)} {repeated}")
