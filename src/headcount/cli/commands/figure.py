"""headcount figure: a figure of a record for a paper."""

from __future__ import annotations

from pathlib import Path

import click

from headcount.cli import options
from headcount.registry import Registry

# The same folder as in report/figure.py.
_FIGURES = Registry[object]("figure", "headcount.report.figures", "FIGURE")


@click.command("figure")
@click.argument("name", type=click.Choice([*_FIGURES.names(), "all"]))
@click.argument("records", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@options.figure_formats
@click.option("--out", default="figures", show_default=True, type=options.FOLDER, help="Folder to write to.")
def COMMAND(name: str, records: tuple[Path, ...], formats: tuple[str, ...], out: Path) -> None:  # noqa: N802
    """Draw a figure of RECORDS (record.json, or the folder that holds it): the picture, its caption, its data as CSV.

    all: every figure that the record has the parts for. Several records are shown side by side where a figure can.
    """
    from headcount.cli import show
    from headcount.errors import UsageError
    from headcount.record import Record
    from headcount.report.figure import fitting, write

    read = [Record.load(path / "record.json" if path.is_dir() else path) for path in records]
    names = [name]
    if name == "all":
        names = [found for found in fitting(read[0]) if all(found in fitting(record) for record in read[1:])]
        if not names:
            raise UsageError(f"There is no figure of {', '.join(record.study for record in read)} records.")
    console = show.console()
    for one in names:
        for file in write(one, read, out, formats):
            show.line(console, str(file))
