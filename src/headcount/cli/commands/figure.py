"""headcount figure: a figure of a record for a paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headcount.cli import options
from headcount.registry import Registry

if TYPE_CHECKING:
    from headcount.record import Record

# The same folder as in report/figure.py.
_FIGURES = Registry[object]("figure", "headcount.report.figures", "FIGURE")


_NAMES = [*_FIGURES.names(), "all"]


@click.command("figure", epilog=f"FIGURE is one of {', '.join(_NAMES)}.")
@click.argument("name", metavar="FIGURE", type=click.Choice(_NAMES))
@click.argument("records", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@options.figure_formats
@options.out_folder("Folder for the figures.", shared=True, default="figures", show_default=True)
def COMMAND(name: str, records: tuple[Path, ...], formats: tuple[str, ...], out: Path) -> None:
    """Draw a figure of RECORDS (record.json, or the folder that holds it): the picture, its caption, its data as CSV.

    FIGURE all draws every figure that the records have data for. Several records are shown side by side if the figure
    supports it; from a combined record the matching parts are used.
    """
    from headcount.cli import show
    from headcount.record import displayed

    console = show.console()
    with displayed(records):
        for file in _written(name, options.read_records(records), out, formats):
            show.line(console, str(file))


def _written(name: str, records: list[Record], out: Path, formats: tuple[str, ...]) -> Iterator[Path]:
    from headcount.errors import UsageError
    from headcount.record.flat import flat
    from headcount.report.figure import figures, fitting, write

    groups = [list(flat(record)) for record in records]
    drawable = [{figure_name for record in group for figure_name in fitting(record)} for group in groups]
    names = [name] if name != "all" else sorted(set.union(*drawable))
    if not names:
        raise UsageError(f"There is no figure of {', '.join(record.study for record in records)} records.")
    for figure_key in names:
        # `write` raises a clear error for a single record that does not fit
        group_records = [
            record
            for group in groups
            for record in group
            if figures[figure_key].fits(record) or (name != "all" and len(group) == 1)
        ]
        yield from write(figure_key, group_records or records, out, formats)
