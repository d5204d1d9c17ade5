"""Records in the terminal: every question with its answer, a sketch and its tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from headcount.errors import UnknownHead
from headcount.heads import Head
from headcount.record import Record
from headcount.report.figure import named
from headcount.report.fitted import FittedTable
from headcount.report.headmap import colour
from headcount.report.measured import measured_line, measured_lines
from headcount.report.section import Labelled, Section, all_tables, answers, labelled_for, ordered
from headcount.report.subject import subjects
from headcount.report.table import Table


def show(
    console: Console, records: Sequence[Record], *, tables: bool = True, missing: bool = True, all_rows: bool = False
) -> None:
    """Print the report.

    tables: also the numbers behind the answers. missing: also the questions that these records do not answer.
    all_rows: every row of tables of many heads.
    """
    models = subjects(records)
    present = [(section, labelled_for(section, models)) for _, section in ordered()]
    console.print(f"[bold]The heads of {escape(' and '.join(model.label for model in models))}[/]\n", soft_wrap=True)
    for section, labelled in present:
        if labelled:
            _answer(console, section, labelled, len(models))
            for line, held_out in measured_lines(labelled):
                console.print(_measured(line, held_out))
            if tables:
                _numbers(console, section, labelled, all_rows=all_rows)
            for _, record in labelled if tables else ():
                console.print(Text(str(record.signature), style="dim"), soft_wrap=True)
            console.print()
    absent = [section for section, labelled in present if not labelled]
    if absent and missing:
        console.print("[bold]Not measured[/]", soft_wrap=True)
        for section in absent:
            console.print(Text(f"  {section.question}"))
            console.print(Text(f"    {section.command}", style="dim"), soft_wrap=True)


def show_result(console: Console, record: Record, *, all_rows: bool) -> None:
    """Print the result of a command: first the texts it was measured on, then its sections of the report."""
    line, held_out = measured_line(record)
    if line:
        console.print(_measured(line, held_out), soft_wrap=True)
    console.print(Text(named(record), style="bold"), soft_wrap=True)
    for _, section in ordered():
        if section.fits(record):
            console.print()
            labelled = [(named(record), record)]
            _answer(console, section, labelled)
            _numbers(console, section, labelled, all_rows=all_rows)
    console.print(Text(f"\n{record.signature}", style="dim"), soft_wrap=True)


def _measured(line: str, held_out: bool) -> Text:
    return Text(line, style="" if held_out else "yellow")


def _answer(console: Console, section: Section, labelled: Labelled, subjects: int = 1) -> None:
    console.print(Text(section.question, style="bold"))
    for answer in answers(section, labelled, subjects=subjects):
        console.print(Text(answer))


def _numbers(console: Console, section: Section, labelled: Labelled, *, all_rows: bool) -> None:
    for label, record in labelled:
        sketch = section.sketch(record)
        if sketch is not None:
            console.print(Text(f"\n{label}" if len(labelled) > 1 else ""))
            console.print(sketch)
    for table in all_tables(section, labelled):
        visible = table if all_rows else table.shortened("--all prints every head")
        console.print(Text(f"\n{visible.title}", style="italic"))
        console.print(terminal_table(visible))
        if visible.note:
            console.print(Text(visible.note, style="dim"))


def terminal_table(table: Table) -> FittedTable:
    keys = 2 if table.columns[0].name == "model" else 1  # several models: which one, then which row of it
    fitted = FittedTable(keys=keys)
    for index, column in enumerate(table.columns):
        numbers = any(isinstance(row[index], int | float) and not isinstance(row[index], bool) for row in table.rows)
        fitted.add_column(column.name, justify="right" if numbers else "left", no_wrap=numbers)
    for row in table.rows:
        fitted.add_row(
            *(Text(column.text(value), style=_style(value)) for column, value in zip(table.columns, row, strict=True))
        )
    return fitted


def _style(value: object) -> str:
    """Heads and sites have the colour of their kind."""
    try:
        kind = Head.parse(value if value.count(".") > 1 else f"{value}.0").kind if isinstance(value, str) else ""
    except UnknownHead:
        return ""
    return colour(kind) if kind else ""
