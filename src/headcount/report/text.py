"""The same record for the terminal: every question with its answer and its tables, for people without a browser."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Shown
from rich.text import Text

from headcount.record import Record
from headcount.report.section import Labelled, Section, answers, beside, labelled_for, ordered
from headcount.report.subject import subjects
from headcount.report.table import Table


def show(console: Console, records: Sequence[Record], *, tables: bool = True) -> None:
    """Print the report; tables: also the numbers behind the answers."""
    found = subjects(records)
    present = [(section, labelled_for(section, found)) for _, section in ordered()]
    console.print(f"[bold]The heads of {escape(' and '.join(subject.label for subject in found))}[/]\n", soft_wrap=True)
    for section, labelled in present:
        if labelled:
            _section(console, section, labelled, tables)
    absent = [section for section, labelled in present if not labelled]
    if absent:
        console.print("[bold]Not measured[/]", soft_wrap=True)
        for section in absent:
            console.print(Text(f"  {section.question}"))
            console.print(Text(f"    {section.command}", style="dim"), soft_wrap=True)


def _section(console: Console, section: Section, labelled: Labelled, tables: bool) -> None:
    console.print(Text(section.question, style="bold"))
    for answer in answers(section, labelled):
        console.print(Text(answer))
    if tables:
        paper = beside(section, labelled)
        for table in (*section.tables(labelled), *([paper] if paper else [])):
            console.print()
            console.print(_shown(table))
            if table.note:
                console.print(Text(table.note, style="dim"))
        for _, record in labelled:
            console.print(Text(str(record.signature), style="dim"), soft_wrap=True)
    console.print()


def _shown(table: Table) -> Shown:
    shown = Shown(title=Text(table.title, style="italic"), title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(table.columns):
        number = any(isinstance(row[place], int | float) for row in table.rows)
        words = [word for row in table.rows for word in column.text(row[place]).split()] + column.name.split()
        shown.add_column(
            Text(column.name, style="bold"), justify="right" if number else "left", overflow="fold",
            min_width=min(14, max(map(len, words))),
        )  # fmt: skip
    for row in table.rows:
        shown.add_row(*(Text(column.text(value)) for column, value in zip(table.columns, row, strict=True)))
    return shown
