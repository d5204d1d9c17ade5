"""Section: one question about a model with its answer, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import RenderableType

from headcount.record import Record
from headcount.record.results.ledger import Ledger
from headcount.record.results.prune import Pruning
from headcount.record.results.score import Scoring
from headcount.registry import Registry
from headcount.report.apart import arguments_apart, pruned_by
from headcount.report.figure import Figure, part_of
from headcount.report.subject import Subject
from headcount.report.table import Column, Table, headings

Labelled = Sequence[tuple[str, Record]]  # name and record


@dataclass(frozen=True)
class Printed:
    """A number in a paper, and ours; None if ours was not measured."""

    what: str
    paper: str
    ours: str | None


def _nothing(*_: Any) -> Any:
    return []


@dataclass(frozen=True)
class Section:
    """A question, the records that answer it, and the answer."""

    order: int  # position on the page
    title: str
    question: str
    studies: tuple[str, ...]  # whose records answer it
    parts: tuple[str, ...]  # that such a record must have; a.b is part b of part a
    command: str  # that writes such a record
    answer: Callable[[Record], str]  # one sentence from the numbers
    method: str  # how it is measured
    tables: Callable[[Labelled], list[Table]] = _nothing
    sketch: Callable[[Record], RenderableType | None] = lambda _: None  # for the terminal, which has no figures
    alike: Callable[[Record], Hashable] = lambda _: None  # what records of one table share: tables_of_alike
    figures: tuple[str, ...] = ()  # figures of this section
    printed: Callable[[Record], list[Printed]] = _nothing  # in the papers
    when: Callable[[Record], bool] = lambda _: True  # whether a record with the parts has something to show
    without: str = ""  # why a record of the studies may not answer it

    def fits(self, record: Record) -> bool:
        complete = record.study in self.studies and all(part_of(record, name) is not None for name in self.parts)
        return complete and self.when(record)


sections: Registry[Section] = Registry("section of the report", "headcount.report.sections", "SECTION")


def ordered() -> list[tuple[str, Section]]:
    """All sections in the order of the page."""
    return sorted(sections.items(), key=lambda item: item[1].order)


def figures_for(
    section: Section, records: Sequence[Record], sections: Sequence[Section], drawable: Mapping[str, Figure]
) -> dict[str, list[Record]]:
    """Figures of a section by name, each with the records that it can be drawn of.

    They are its own figures, and those of no section that fit a record whose first section this is.
    sections: all sections in the order of the page. drawable: all figures by name.
    """
    claimed = {name for other in sections for name in other.figures}
    by_figure: dict[str, list[Record]] = {}
    for name in (
        *(name for name in section.figures if name in drawable),
        *(name for name in drawable if name not in claimed),
    ):
        figure_records = [
            record
            for record in records
            if drawable[name].fits(record)
            and (name in section.figures or section is next(other for other in sections if other.fits(record)))
        ]
        by_figure |= {name: figure_records} if figure_records else {}
    return by_figure


def labelled_for(section: Section, all_subjects: Sequence[Subject]) -> Labelled:
    """Records that answer a section; several of one subject are labelled by their method, or by what they pruned."""
    labelled = []
    for subject in all_subjects:
        section_records = [record for record in subject.records if section.fits(record)]
        for record in section_records:
            method = _method(record, section_records) if len(section_records) > 1 else ""
            names = [name for name in ((subject.label if len(all_subjects) > 1 else ""), method) if name]
            labelled.append((", ".join(names) or subject.label, record))
    return labelled


def _method(record: Record, records: Sequence[Record]) -> str:
    """The method of one of several records, or what it pruned."""
    if isinstance(record.parts, Pruning):
        return pruned_by(record, records)
    method = str(part_of(record, "method") or part_of(record, "pruned") or "")
    return f"{method}{arguments_apart(record, records)}" if isinstance(record.parts, Scoring) else method


def answers(section: Section, labelled: Labelled, *, subjects: int = 1) -> list[str]:
    """The answer of each record, after its label where there are several, or several subjects in the report."""
    if len(labelled) == 1 and (subjects == 1 or isinstance(labelled[0][1].parts, Ledger)):  # a ledger names its models
        return [section.answer(labelled[0][1])]
    return [f"{label}: {section.answer(record)}" for label, record in labelled]


def beside(section: Section, labelled: Labelled) -> Table | None:
    """The numbers of the paper beside those measured here."""
    printed_rows: list[list[Printed]] = [section.printed(record) for _, record in labelled]
    if not any(printed_rows):
        return None
    columns = headings("what", "the paper", *(Column(label) for label, _ in labelled))
    rows = []
    longest: list[Printed] = max(printed_rows, key=len)
    for index, longest_row in enumerate(longest):
        values = [
            row[index].ours if index < len(row) and row[index].what == longest_row.what else None
            for row in printed_rows
        ]
        rows.append([longest_row.what, longest_row.paper, *values])
    return Table(
        "Beside the paper", columns, rows, "Other models and other data: shapes can be compared, values cannot."
    )


def all_tables(section: Section, labelled: Labelled) -> list[Table]:
    """The tables of a section, and the numbers of the paper beside those measured here."""
    paper = beside(section, labelled)
    return [*tables_of_alike(labelled, section.alike, section.tables), *([paper] if paper else [])]


def metric_of(record: Record) -> Hashable:
    """The metric of a record: values by different metrics do not stand in one table."""
    return part_of(record, "metric")


def tables_of_alike(
    labelled: Labelled, alike: Callable[[Record], Hashable], tables: Callable[[Labelled], list[Table]]
) -> list[Table]:
    """The tables of each group of records that are alike; those of a single one among several are named after it.

    What a table says of all its rows, in its title, its columns or its note, is of the first record: all others must
    share it.
    """
    groups: dict[Hashable, list[tuple[str, Record]]] = {}
    for label, record in labelled:
        groups.setdefault(alike(record), []).append((label, record))
    named = [(f", {group[0][0]}" if len(group) == 1 < len(labelled) else "", group) for group in groups.values()]
    return [replace(table, title=f"{table.title}{name}") for name, group in named for table in tables(group)]


def table_of(
    title: str,
    labelled: Labelled,
    columns: Sequence[Column],
    rows: Callable[[Record], Sequence[Sequence[Any]]],
    *,
    note: str = "",
    ranked: bool = False,
    grouped: bool = False,
) -> Table:
    """The same rows of several records in one table; with more than one record, the first column says which."""
    if len(labelled) == 1:
        return Table(title, columns, rows(labelled[0][1]), note, ranked, grouped)
    lines = [[label, *line] for label, record in labelled for line in rows(record)]
    return Table(title, [Column("model"), *columns], lines, note, grouped=ranked or grouped)
