"""headcount inspect: which heads a model has, where they are, and which can be removed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from headcount.cli import options


@click.command("inspect")
@options.loading
@options.out_folder("Folder to write record.json to.")
@options.length
@options.as_json
def COMMAND(model: str, length: int, out: Path | None, as_json: bool, how: options.Loading) -> None:  # noqa: N802
    """Show the heads of MODEL: a table and a map of its attention sites, what they cost, and where it runs."""
    from headcount.cli import show
    from headcount.exports.export import fits
    from headcount.surgery.inspection import inspection

    with show.working(f"Loading {model}"):
        live = how.load(model)
        record = inspection(live, name=model, length=length)
        record.parts["runtimes"] = fits(live, model)
    if out:
        record.save(out / "record.json")
    if as_json:
        click.echo(record.to_json())
    else:
        _show(model, record.parts)


def _show(name: str, parts: dict[str, Any]) -> None:
    from headcount.cli import show, tables

    console, sites = show.console(), parts["sites"]
    heads = sum(len(site["heads"]) for site in sites)
    show.title(console, name, f"{parts['class']}, {heads} heads in {len(sites)} sites")
    console.print(tables.site_table(sites))
    for reason in sorted({site["obstacle"] for site in sites if site["obstacle"]}):
        show.line(console, f"\nMasked only: {reason}.")
    console.print()
    console.print(tables.cost_table({"": parts["cost"]}))
    console.print()
    for runtime, row in parts["runtimes"].items():
        state, words = "fits" if row["fits"] else "does not fit", "; ".join(row["words"])
        console.print(f"{runtime:12} {state}{': ' if words else ''}{words}", markup=False)
    first = next((site for site in sites if site["heads"] and not site["obstacle"]), None)
    if first is not None:
        command = f"headcount prune {shlex.quote(name)} --remove {first['site']}.{first['heads'][0]} --out DIR"
        show.line(console, f"\nNext: {command}", dim=True)
