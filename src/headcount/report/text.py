"""The same record for the terminal: every question with its answer and its tables, for people without a browser."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from headcount.record import Record
from headcount.report.fitted import FittedTable
from headcount.report.section import Labelled, Section, answers, beside, labelled_for, ordered
from headcount.report.subject import subjects
from headcount.report.table import Table


def show(console: Console, records: Sequence[Record], *, tables: bool = True, missing: bool = True) -> None:
    """Print the report.

    tables: also the numbers behind the answers. missing: also the questions that these records do not answer.
    """
    found = subjects(records)
    present = [(section, labelled_for(section, found)) for _, section in ordered()]
    console.print(f"[bold]The heads of {escape(' and '.join(subject.label for subject in found))}[/]\n", soft_wrap=True)
    for section, labelled in present:
        if labelled:
            _section(console, section, labelled, tables)
    absent = [section for section, labelled in present if not labelled]
    if absent and missing:
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
            console.print(terminal_table(table))
            if table.note:
                console.print(Text(table.note, style="dim"))
        for _, record in labelled:
            console.print(Text(str(record.signature), style="dim"), soft_wrap=True)
    console.print()


def terminal_table(table: Table) -> FittedTable:
    keys = 2 if table.columns[0].name == "model" else 1  # several models: which one, then which row of it
    shown = FittedTable(keys=keys, title=Text(table.title, style="italic"), title_justify="left")
    for place, column in enumerate(table.columns):
        numbers = any(isinstance(row[place], int | float) and not isinstance(row[place], bool) for row in table.rows)
        shown.add_column(column.name, justify="right" if numbers else "left", no_wrap=numbers)
    for row in table.rows:
        shown.add_row(*(column.text(value) for column, value in zip(table.columns, row, strict=True)))
    return shown
