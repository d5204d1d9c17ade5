"""headcount inspect: which heads a model has, where they are, and which can be removed."""

from __future__ import annotations

import shlex
from dataclasses import replace

import click

from headcount.cli import options


@click.command("inspect")
@options.loading
@options.output
@options.length
def COMMAND(model: str, length: int, output: options.Output, loading: options.Loading) -> None:
    """Show the heads of MODEL: a table and a map of its attention sites, their costs, and supported runtimes."""
    from headcount.cli import show
    from headcount.exports.export import fits
    from headcount.surgery.inspection import inspection

    with show.working(f"Loading {model}"):
        live = loading.load(model)
        record = inspection(live, name=model, length=length)
    runtimes = fits(live, model, revision=loading.revision, trust_remote_code=loading.trust_remote_code)
    record = replace(record, parts=replace(record.parts, runtimes=runtimes))
    removable = (site for site in record.parts.sites if site.indices and not site.obstacle)
    heads = [f"{site.site}.{site.indices[0]}" for site in removable]
    output.present(record, f"headcount prune {shlex.quote(model)} --remove {heads[0]} --out DIR" if heads else "")
