"""headcount report: one page with all results of some records, or the same in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from headcount.cli import options


@click.command("report")
@click.argument("records", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--out", default="report.html", show_default=True, type=click.Path(path_type=Path), help="The page to write."
)
@click.option("--title", help="Heading of the page. Default: the names of the models.")
@click.option("--plain", is_flag=True, help="Show the report in the terminal instead of writing a page.")
@click.option("--short", is_flag=True, help="With --plain: print only the answers, without tables.")
@options.every_row
def COMMAND(records: tuple[Path, ...], out: Path, title: str | None, plain: bool, short: bool, all_rows: bool) -> None:
    """Write a page about RECORDS (record.json, or the folder that holds it): one file that opens anywhere.

    Records of several commands on one model make one report. Two records of the same command are compared.
    Whole studies of several models have one ledger.
    """
    from headcount import journal
    from headcount.claims.pool import pooled_records
    from headcount.cli import show
    from headcount.record import displayed

    console = show.console()
    if plain or short:
        from headcount.report import text as terminal

        with displayed(records):
            terminal.show(console, pooled_records(options.read_records(records)), tables=not short, all_rows=all_rows)
        return
    from headcount.report.html import page
    from headcount.report.page_file import write_page

    file = out / "report.html" if out.is_dir() else out
    journal.check_place(file)
    _check_page(file)
    with show.working("Drawing"), displayed(records):
        written = write_page(file, page(pooled_records(options.read_records(records)), title=title))
    show.line(console, f"{written} ({written.stat().st_size / 1e6:.1f} MB)")
    show.line(
        console, "Next: open it in a browser; headcount figure all RECORD draws its figures for a paper.", dim=True
    )


def _check_page(file: Path) -> None:
    """Raise if another file than a page of headcount, such as a record, stands in the place of the page."""
    from headcount.report.page_file import is_page

    if file.is_file() and file.stat().st_size and not is_page(file):
        raise click.UsageError(f"{file} is not a page of headcount and would be overwritten. Give another --out.")
