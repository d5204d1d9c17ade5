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

    all: every figure that the records have the parts for. Several records are shown side by side where a figure can;
    of a combined record the parts that fit are taken.
    """
    from headcount.cli import show
    from headcount.errors import UsageError
    from headcount.record import Record
    from headcount.report.figure import figures, fitting, write
    from headcount.report.subject import flat

    given = [Record.load(path / "record.json" if path.is_dir() else path) for path in records]
    groups = [list(flat(record)) for record in given]
    every = [{found for record in group for found in fitting(record)} for group in groups]
    names = [name] if name != "all" else sorted(set.intersection(*every))
    if not names:
        raise UsageError(f"There is no figure of {', '.join(record.study for record in given)} records.")
    console = show.console()
    for one in names:
        # a single record that does not fit is for `write` to refuse, with what it has
        chosen = [record for group in groups for record in group if len(group) == 1 or figures[one].fits(record)]
        for file in write(one, chosen or given, out, formats):
            show.line(console, str(file))
