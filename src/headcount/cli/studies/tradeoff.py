"""headcount study tradeoff: quality against the heads that are left, by learned pruning and its controls."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import click

from headcount.cli import data, options


@click.command("tradeoff")
@options.loading
@data.tasked(split="dev", measured=True)
@click.option("--keep", required=True, help="Numbers of heads left: 12,8,3 or encoder=12,8,3 for one kind.")
@click.option(
    "--ways",
    default="l0,subset,rank-gradient,random",
    show_default=True,
    help="l0, subset, random, scratch, rank-SCORE.",
)
@click.option("--seeds", default="0", show_default=True, help="One run for each: 0,1,2.")
@click.option("--steps", default=150, show_default=True, type=click.IntRange(1), help="Steps with gates.")
@click.option("--tune", default=450, show_default=True, type=click.IntRange(0), help="Steps of fine-tuning after.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Learning rate of the weights.")
@click.option("--scratch-steps", default=2400, show_default=True, type=click.IntRange(1), help="From random weights.")
@click.option("--choose-limit", default=300, show_default=True, type=click.IntRange(1), help="Texts to score heads on.")
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    how: options.Loading,
    work: data.TaskText,
    keep: str,
    ways: str,
    seeds: str,
    choose_limit: int,
    output: options.Output,
    as_json: bool,
    **course: Any,
) -> None:
    """Prune MODEL to several sizes by several methods with the same training each (Voita et al. 2019, section 6)."""
    from headcount.cli import show, tables
    from headcount.methods.course import Course
    from headcount.studies.tradeoff import Data, Plan, tradeoff

    kind, _, numbers = keep.rpartition("=")
    scratch_steps = course.pop("scratch_steps")
    try:
        counts = tuple(int(part) for part in numbers.split(","))
        chosen = tuple(int(part) for part in seeds.split(","))
    except ValueError as error:
        raise click.UsageError(f"--keep and --seeds are whole numbers such as 12,8,3; got {keep}, {seeds}.") from error
    names = tuple(part.strip() for part in ways.split(",") if part.strip())
    plan = Plan(counts, names, (kind,) if kind else None, chosen, Course(**course), scratch_steps)
    with show.working(f"Loading {model}"):
        measure = work.elsewhere(None, work.measured or "test").build(model, how)
        choose = replace(work, limit=choose_limit).build(model, how)
        train = replace(work, split="train").build(model, how)
        live = how.load(model, task=work.task)
    with show.Bars() as bars:
        parts = Data(train, choose, measure)
        record = tradeoff(live, parts, plan, name=model, folder=output.unfinished, progress=bars.show)

    def draw(console: Any) -> None:
        show.title(console, model, f"{record.parts['metric']} {record.parts['whole']['value']:.2f} with all heads")
        console.print(tables.tradeoff_table(record.parts))
        again = f"--keep {keep.split(',')[0]} --task {work.task} {work.text.as_options()}"
        show.line(console, f"\nNext: headcount prune {shlex.quote(model)} --method l0 {again} --out DIR", dim=True)

    if record.parts["missing"]:  # the process that measures the last point writes the record
        draw(show.console())
        show.line(show.console(), f"{record.parts['missing']} points are under way in other processes.")
        return
    output.present(record, as_json, draw)
