"""Run fault injection on every command and write the results as JSON."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

os.environ.update(
    OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", HF_DATASETS_DISABLE_PROGRESS_BARS="1"
)

from chaos.campaign import Campaign, clear, write
from chaos.commands import COMMANDS


@click.command()
@click.argument("only", nargs=-1, type=click.Choice(list(COMMANDS)))
@click.option("--seed", default=0, show_default=True, help="Of the moments.")
@click.option("--moments", default=20, show_default=True, type=click.IntRange(1), help="Interruptions of a command.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--minutes", type=float, help="Begin no further case after so long.")
@click.option("--out", default="chaos.json", show_default=True, type=click.Path(dir_okay=False, path_type=Path))
def main(only: tuple[str, ...], seed: int, moments: int, workers: int, minutes: float | None, out: Path) -> None:
    """Test every command (or ONLY these) with interruptions, a full disk, a read-only folder and two processes."""
    from chaos import inputs, load
    from chaos.process import Run
    from chaos.program import PROGRAM

    folder = Path(tempfile.mkdtemp(prefix="headcount-chaos-"))
    try:
        inputs.make(folder / "inputs")
        name, arguments = inputs.TRANSLATOR
        outcome = Run(PROGRAM, arguments, folder / "inputs").wait(600)
        if outcome.status:
            raise click.ClickException(f"{name} cannot be made: {outcome.output}")
        commands = {name: COMMANDS[name] for name in only or COMMANDS}
        campaign = Campaign(PROGRAM, commands, folder / "inputs", folder, seed, moments, workers, minutes)
        result = campaign.run(lambda text: click.echo(text, err=True))
        if not only:
            result["load"] = load.resumed()
            if result["load"]["seconds"] > load.MOST:
                result["faults"].append(f"a trade-off of 1,000 points takes {result['load']['seconds']} s to resume")
    finally:
        clear(folder)
    write(result, out)
    cases = sum(row["cases"] for row in result["commands"].values())
    click.echo(f"{cases} cases, {len(result['faults'])} faults, {result['seconds']} s; written to {out}")
    sys.exit(1 if result["faults"] else 0)


main()
