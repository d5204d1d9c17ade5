"""headcount study curves: quality as heads are removed, by several orders and kinds."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options

if TYPE_CHECKING:
    from headcount.record import Record


@click.command("curves")
@options.loading
@data.tasked(split="dev", measured=True)
@click.option(
    "--orders", default="gradient,ablation", show_default=True, help="Scores to rank heads by, separated by commas."
)
@options.integer("--random", "Number of random orders, as a control.", 5, least=0)
@options.percent("--step", 10.0)
@options.percent("--upto", 100.0)
@options.toggle("--by-kind/--no-by-kind", "Also prune each kind of attention alone.")
@click.option("--recompute", is_flag=True, help="Score the remaining heads again after each step.")
@options.output
def COMMAND(
    model: str,
    loading: options.Loading,
    work: data.Workload,
    orders: str,
    step: float,
    upto: float,
    output: options.Output,
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
        record = pruning_curves(
            live, task, measure_on=measure_on, plan=curve_plan, name=model, revision=loading.revision,
            folder=output.unfinished, progress=bars.show,
        )  # fmt: skip
    output.present(record, f"headcount prune {shlex.quote(model)} {_choice(record)} {work.as_options()} --out DIR")


def _choice(record: Record) -> str:
    """Options that remove as many heads as can go by gradient, or by the first order if that was not measured."""
    from math import isnan

    from headcount.report.sections.curves import orders, share_to_try

    measured = [order for order in orders(record.parts) if order != "random"]
    order = "gradient" if "gradient" in measured or not measured else measured[0]
    share = share_to_try(record.parts, order)
    return f"--choose {order} --keep {'KEEP' if isnan(share) else f'{100 * (1 - share):.0f}%'}"
