"""Run every benchmark (or those named), print one table, write bench.json."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import click
import datasets
import torch
import transformers
from rich.console import Console
from rich.table import Table

import benchmarks
from benchmarks.row import Row
from headcount import journal
from headcount.record import installed_versions

_NOT_BENCHMARKS = {"__main__", "laboratory", "models", "resident", "row"}


def names() -> list[str]:
    return sorted(info.name for info in pkgutil.iter_modules(benchmarks.__path__) if info.name not in _NOT_BENCHMARKS)


@click.command()
@click.argument("only", nargs=-1, type=click.Choice(names()))
@click.option("--out", default="bench.json", type=click.Path(dir_okay=False, path_type=Path), show_default=True)
def main(only: tuple[str, ...], out: Path) -> None:
    """Measure ratios, side by side in one run. Let nothing else run meanwhile."""
    transformers.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    console, found = Console(highlight=False), []
    for name in only or names():
        console.print(f"[dim]{name} ...[/]")
        for row in importlib.import_module(f"benchmarks.{name}").rows():
            low, value, high = row.interval.low, row.interval.value, row.interval.high
            console.print(f"[dim]  {row.name}: {value:.3f} ({low:.3f} - {high:.3f})[/]", soft_wrap=True)
            found.append(row)
    console.print(_table(found))
    machine = {"threads": torch.get_num_threads(), "versions": installed_versions()}
    journal.write_json(out, {"machine": machine, "rows": [row.to_plain() for row in found]})
    console.print(f"Written to {out}")


def _table(rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("ratio", "ratio", "95% interval", "target", "met", "seconds"):
        table.add_column(column, justify="left" if column in ("seconds",) else "right", no_wrap=column != "seconds")
    table.columns[0].header, table.columns[0].justify, table.columns[0].no_wrap = "benchmark", "left", False
    for row in rows:
        low, high = f"{row.interval.low:.3f}", f"{row.interval.high:.3f}"
        seconds = ", ".join(f"{name} {value:.3f}" for name, value in row.seconds.items())
        name = f"{row.name}\n[dim]{row.note}[/]" if row.note else row.name
        met = "[green]yes[/]" if row.met else "[red]no[/]"
        table.add_row(name, f"{row.interval.value:.3f}", f"{low} - {high}", row.target, met, seconds)
    return table


if __name__ == "__main__":
    main()
