"""headcount ablate: what is lost without each head, with statistics."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import data, options


@click.command("ablate")
@options.loading
@data.tasked(split="test")
@click.option("--other-data", help="A second data set: do the same heads matter there?")
@options.other_split
@click.option("--alone/--no-alone", default=True, show_default=True, help="Also leave each head alone in its layer.")
@click.option("--early", is_flag=True, help="Stop measuring a head once it is certain that it matters (accuracy only).")
@click.option("--alpha", default=0.01, show_default=True, type=click.FloatRange(0, 1, min_open=True, max_open=True))
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    loading: options.Loading,
    work: data.Workload,
    other_data: str | None,
    other_split: str | None,
    output: options.Output,
    as_json: bool,
    **settings: Any,
) -> None:
    """Switch off every head of MODEL alone and measure what is lost; then leave every head alone in its layer."""
    from headcount.cli import show
    from headcount.studies.ablation import ablate

    with show.working(f"Loading {model}"):
        task = work.build(model, loading)
        other = work.on(other_split, data=other_data) if other_data or other_split else None
        other_task = other.build(model, loading) if other else None
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        record = ablate(
            live, task, name=model, other=other_task, keep=output.unfinished, progress=bars.show, **settings
        )
    output.present(record, as_json, lambda console: _show(console, model, record))


def _show(console: Any, name: str, record: Any) -> None:
    from headcount.cli import show, tables

    parts = record.parts
    metric, summary = parts["metric"], parts["summary"]
    show.title(console, name, f"{metric} {parts['value']:.2f} with all {summary['heads']} heads")
    console.print(f"Change of {metric} without each head (* p < {parts['alpha']} after Holm's correction):\n")
    console.print(tables.effect_table(parts["one_out"], parts["alpha"]))
    said = f"{summary['significant_corrected']} of {summary['heads']} heads matter significantly"
    console.print(f"\n{said} after correction ({summary['significant']} before).")
    if "all_but_one" in parts:
        console.print(f"\nBest head alone in its layer, and the change of {metric}:\n")
        console.print(tables.alone_table(parts))
    if "other" in parts:
        found = parts["other"]["pearson"]
        if found["r"] is None:
            console.print("\nThe two data sets cannot be compared: nothing changes on one of them.")
        else:
            interval = f"95% {found['low']:.2f} to {found['high']:.2f}"
            console.print(f"\nChanges on the two data sets correlate: Pearson r = {found['r']:.2f} ({interval})")
    least = sorted(parts["one_out"], key=lambda head: abs(parts["one_out"][head]["difference"]))[:3]
    show.line(console, f"Next: headcount prune {shlex.quote(name)} --remove {','.join(least)} --out DIR", dim=True)
