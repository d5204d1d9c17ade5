"""headcount inspect: which heads a model has, where they are, and which can be removed."""

from __future__ import annotations

import shlex

import click

from headcount.cli import options


@click.command("inspect")
@options.loading
@options.output
@options.length
@options.as_json
def COMMAND(  # noqa: N802
    model: str, length: int, output: options.Output, as_json: bool, loading: options.Loading
) -> None:
    """Show the heads of MODEL: a table and a map of its attention sites, and what they cost."""
    from headcount.cli import show
    from headcount.surgery.inspection import inspection

    with show.working(f"Loading {model}"):
        record = inspection(loading.load(model), name=model, length=length)
    removable = (site for site in record.parts.sites if site.indices and not site.obstacle)
    heads = [f"{site.site}.{site.indices[0]}" for site in removable]
    output.present(
        record, as_json, f"headcount prune {shlex.quote(model)} --remove {heads[0]} --out DIR" if heads else ""
    )
