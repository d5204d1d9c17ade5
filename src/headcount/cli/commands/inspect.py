"""headcount inspect: which heads a model has, where they are, and which can be removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headcount.cli import options


@click.command("inspect")
@options.loading
@click.option(
    "--length",
    default=128,
    show_default=True,
    type=click.IntRange(1),
    help="Tokens of the example for FLOPs and cache.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder to write record.json to.")
@options.as_json
def COMMAND(model: str, length: int, out: Path | None, as_json: bool, **how: Any) -> None:  # noqa: N802
    """Show the heads of MODEL: a table and a map of its attention sites, and what they cost."""
    from headcount.surgery.inspection import inspection

    live = options.load_model(model, **how)
    record = inspection(live, name=model, length=length)
    if out:
        record.save(out / "record.json")
    if as_json:
        click.echo(record.to_json())
    else:
        _show(model, record.parts)


def _show(name: str, parts: dict[str, Any]) -> None:
    from headcount.cli import show

    console = show.console()
    sites = parts["sites"]
    heads = sum(len(site["heads"]) for site in sites)
    console.print(f"[bold]{name}[/]  {parts['class']}, {heads} heads in {len(sites)} sites\n")
    console.print(show.site_table(sites, width=console.width))
    for reason in sorted({site["obstacle"] for site in sites if site["obstacle"]}):
        console.print(f"\nMasked only: {reason}.", style="red")
    console.print()
    console.print(show.cost_table({"": parts["cost"]}))
    first = next((site for site in sites if site["heads"]), None)
    if first is not None:
        console.print(
            f"\nNext: headcount prune {name} --remove {first['site']}.{first['heads'][0]} --out DIR", style="dim"
        )
