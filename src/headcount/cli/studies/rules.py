"""headcount study rules: how far the rules of relevance agree about which heads matter."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import data, options


@click.command("rules")
@options.loading
@data.tasked(split="dev")
@click.option("--target", type=click.Choice(["own", "reference"]), default="own", show_default=True,
              help="What translations go on from.")  # fmt: skip
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str, loading: options.Loading, work: data.Workload, target: str, output: options.Output, as_json: bool
) -> None:
    """Score every head of MODEL by every rule of relevance, and correlate their ranks."""
    from headcount.cli import show
    from headcount.studies.rules import compare_rules

    with show.working(f"Loading {model}"):
        task = work.build(model, loading)
        live = loading.load(model, task=work.task)
    with show.Bars() as bars:
        record = compare_rules(live, task, name=model, target=target, progress=bars.show)
    output.present(record, as_json, lambda console: _show(console, model, record))


def _show(console: Any, name: str, record: Any) -> None:
    from headcount.cli import show, tables

    parts = record.parts
    show.title(console, name, f"Spearman correlation of {len(parts['scores'])} rules of relevance, heads of each kind")
    console.print(tables.number_table("rules", {pair: _values(found) for pair, found in parts["spearman"].items()}))
    console.print("\nConstants absorbed, as a share of the predictions' size, and the largest error of a cut:\n")
    console.print(
        tables.number_table("rule", {rule: _kept(found) for rule, found in parts["details"].items()}, digits=".2g")
    )
    for rule, reason in parts["refused"].items():
        show.line(console, f"{rule}: {reason}")
    show.line(console, f"\nNext: headcount score {shlex.quote(name)} --method relevance --rule ding ...", dim=True)


def _values(found: dict[str, Any]) -> dict[str, float | None]:
    return {kind: correlation["r"] for kind, correlation in found.items()}


def _kept(details: dict[str, Any]) -> dict[str, float]:
    return {"absorbed": details["absorbed"], "error": max(cut["error"] for cut in details["cuts"].values())}
