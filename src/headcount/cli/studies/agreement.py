"""headcount study agreement: how far cheap scores agree with exact ablation."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import data, options


@click.command("agreement")
@options.loading
@data.tasked(split="dev", measured=True)
@click.option("--methods", help="Scores to compare, separated by commas; all if not given.")
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    loading: options.Loading,
    work: data.Workload,
    methods: str | None,
    output: options.Output,
    as_json: bool,
) -> None:
    """Score every head of MODEL by every method; compare ranks with ablation, and what pruning by each order costs."""
    from headcount.cli import show
    from headcount.studies.agreement import METHODS, agreement

    names = options.names(methods) or METHODS
    with show.working(f"Loading {model}"):
        task, measure_on = work.both(model, loading)
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        record = agreement(
            live, task, measure_on=measure_on, methods=names, name=model, keep=output.unfinished, progress=bars.show
        )
    output.present(record, as_json, lambda console: _show(console, model, record))


def _show(console: Any, name: str, record: Any) -> None:
    from headcount.cli import show, tables

    parts = record.parts
    show.measured(console, parts)
    show.title(console, name, f"agreement of {len(parts['spearman'])} scores with ablation of {parts['heads']} heads")
    console.print("Spearman's r with ablation (95% over heads), and overlap of the best heads:\n")
    console.print(tables.number_table("score", {method: _agrees(parts, method) for method in parts["spearman"]}))
    console.print(f"\nChange of {parts['metric']} as the lowest heads go:\n")
    console.print(tables.number_table("score", {method: _costs(rows) for method, rows in parts["pruning"].items()}))
    for method, reason in parts["refused"].items():
        show.line(console, f"{method}: {reason}")
    show.line(console, f"\nNext: headcount study curves {shlex.quote(name)} --orders gradient,ablation ...", dim=True)


def _agrees(parts: dict[str, Any], method: str) -> dict[str, float | None]:
    found = parts["spearman"][method]["all"]
    overlap = {f"top {row['share']:.0%}": row["overlap"] for row in parts["overlap"][method]}
    return {"r": found["r"], "low": found["low"], "high": found["high"], **overlap}


def _costs(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {f"{row['share']:.0%} gone": row["difference"]["difference"] for row in rows}
