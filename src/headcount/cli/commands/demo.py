"""headcount demo: everything at a glance on a model made on the spot."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from headcount.cli import options


@click.command("demo")
@click.option("--out", default="demo", show_default=True, type=options.FOLDER, help="Folder for models and report.")
@click.option("--seed", default=0, show_default=True, type=int, help="Another seed, another model.")
def COMMAND(out: Path, seed: int) -> None:  # noqa: N802
    """Teach a tiny translation model, find the heads it needs, remove the rest, and show what is left."""
    from rich.console import Console

    from headcount import journal
    from headcount.cli import show
    from headcount.studies.first_look import first_look
    from headcount.studies.source import quiet

    quiet()
    with show.Bars() as bars:
        record = first_look(out, seed=seed, progress=bars.show)
    record.save(out / "record.json")
    report = Console(record=True, highlight=False, width=100)
    _show(report, record.parts, out)
    journal.write_text(out / "report.txt", report.export_text())
    show.line(report, f"\nThe same as text: {out / 'report.txt'}; every number: {out / 'record.json'}")


def _show(console: Any, parts: dict[str, Any], out: Path) -> None:
    from headcount.cli import show

    kept, heads = len(parts["kept"]), len(parts["lost_alone"])
    accuracy, speedup = parts["accuracy"], parts["speedup"]
    console.print("\n[bold]A translation model that turns sequences around[/]\n")
    console.print("Words lost when one head alone is switched off, in percent:\n")
    console.print(show.head_table(parts["lost_alone"], scale=100))
    console.print(f"\n{heads - kept} of {heads} heads can go, least needed first, for at most 1% of the words:\n")
    console.print(show.site_table(parts["sites"]))
    console.print()
    console.print(show.cost_table(parts["cost"]))
    right = {name: f"{100 * share:.2f}%" for name, share in accuracy.items()}
    interval = f"95% {speedup['low']:.2f} to {speedup['high']:.2f}"
    console.print(f"\nright words: {right['whole']} with all heads, {right['pruned']} without them")
    console.print(f"speed: {speedup['value']:.2f} times the whole model's ({interval})")
    console.print(f"masked and removed differ by {parts['difference']:.1e} of the largest logit")
    console.print("\nNext, on these or on a model of your own:", style="dim")
    for command in (
        f"inspect {shlex.quote(str(out / 'model'))}",
        f"prune {shlex.quote(str(out / 'model'))} --remove 'encoder.0.0,cross.1.*' --out smaller",
        f"inspect {shlex.quote(str(out / 'pruned'))} --json",
    ):
        show.line(console, f"  headcount {command}", dim=True)
