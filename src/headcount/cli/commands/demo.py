"""headcount demo: everything at a glance on a model made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command("demo")
@click.option(
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for models, record and report.",
)
@click.option("--seed", default=0, show_default=True, type=int)
def COMMAND(out: Path, seed: int) -> None:  # noqa: N802
    """Teach a tiny translation model, find the heads it needs, remove the rest, and show what is left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from headcount import journal
    from headcount.cli import options
    from headcount.studies.first_look import first_look

    options.quiet()
    columns = (
        TextColumn("{task.description:30}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def progress(part: str, done: int, of: int) -> None:
            if part not in tasks:
                tasks[part] = bars.add_task(part, total=of)
            bars.update(tasks[part], completed=done)

        record = first_look(out, seed=seed, progress=progress)
    record.save(out / "record.json")
    report = Console(record=True, highlight=False, width=100)
    _show(report, record.parts, out)
    journal.write_text(out / "report.txt", report.export_text())
    report.print(f"\nThe same as text: {out / 'report.txt'}; every number: {out / 'record.json'}")


def _show(console: Any, parts: dict[str, Any], out: Path) -> None:
    from headcount.cli import show

    kept, heads = len(parts["kept"]), len(parts["lost_alone"])
    accuracy, speedup = parts["accuracy"], parts["speedup"]
    console.print("\n[bold]A translation model that turns sequences around[/]\n")
    console.print("Words lost when one head alone is switched off, in percent:\n")
    console.print(show.head_table(parts["lost_alone"], scale=100))
    console.print(f"\n{heads - kept} of {heads} heads are not needed. What is left after removing them:\n")
    console.print(show.site_table(parts["sites"]))
    console.print()
    console.print(show.cost_table(parts["cost"]))
    console.print(
        f"\nright words: {100 * accuracy['whole']:.2f}% with all heads, {100 * accuracy['pruned']:.2f}% without them"
    )
    console.print(
        f"speed: {speedup['value']:.2f} times the whole model's (95% {speedup['low']:.2f} to {speedup['high']:.2f})"
    )
    console.print(f"masked and removed differ by {parts['difference']:.1e} of the largest logit")
    console.print("\nNext, on these or on a model of your own:", style="dim", soft_wrap=True)
    console.print(f"  headcount inspect {out}/model", style="dim", soft_wrap=True)
    console.print(
        f"  headcount prune {out}/model --remove encoder.0.0,cross.1.* --out smaller", style="dim", soft_wrap=True
    )
    console.print(f"  headcount inspect {out}/pruned --json", style="dim", soft_wrap=True)
