"""The attention of one head in one sentence."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from headcount.record import Record
from headcount.record.results.attention import AttentionMap
from headcount.report.fitted import FittedTable
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Column, Rows, Table, headings

_SHADES = " \u00b7\u2591\u2592\u2593\u2588"
_BOUNDS = (0.02, 0.06, 0.15, 0.3, 0.6)  # weights below which each shade stands for


def _answer(record: Record[AttentionMap]) -> str:
    parts = record.parts
    keys = {max(range(len(row)), key=row.__getitem__) for row in parts.weights}
    mean = sum(max(row) for row in parts.weights) / len(parts.weights)
    return f"The largest weights of {parts.head} are on {len(keys)} of {len(parts.keys)} tokens, {mean:.2f} on average."


def _tables(labelled: Labelled) -> list[Table]:
    def rows(record: Record[AttentionMap]) -> Rows:
        tops = [max(range(len(row)), key=row.__getitem__) for row in record.parts.weights]
        return [
            [query, record.parts.keys[top], row[top]]
            for query, row, top in zip(record.parts.queries, record.parts.weights, tops, strict=True)
        ]

    columns = headings("token", "looks most at", Column("weight", 2))
    return [table_of("What each token looks at most", labelled, columns, rows)]


class AttentionSketch:
    """Rows are queries, columns are keys; darker means more attention. Column numbers read from top to bottom."""

    def __init__(self, parts: AttentionMap) -> None:
        self._parts = parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = self._parts
        table = FittedTable(keys=2, gaps=(0,))
        table.add_column("", justify="right", min_width=14)
        table.add_column("", min_width=5, no_wrap=True)
        for index in range(len(parts.keys)):
            table.add_column("\n".join(str(index)), no_wrap=True)
        for index, (query, row) in enumerate(zip(parts.queries, parts.weights, strict=True)):
            table.add_row(query, f" {index:>2}  ", *map(_shade, row))
        yield table
        if parts.queries != parts.keys:
            columns = " ".join(f"{index}:{key}" for index, key in enumerate(parts.keys))
            yield Text(f"\ncolumns: {columns}", style="dim")


def _shade(weight: float) -> Text:
    """Two columns of the terminal for one attention weight."""
    step = next((index for index, bound in enumerate(_BOUNDS) if weight < bound), len(_BOUNDS))
    return Text(_SHADES[step] * 2, style="magenta" if step > 2 else "")


SECTION = Section(
    order=14,
    title="Attention of one head",
    question="Where does the head look?",
    studies=("attention",),
    parts=("weights",),
    command="headcount attention MODEL --head HEAD --text TEXT --out DIR",
    answer=_answer,
    method="The attention weights of one head on one sentence: rows are queries, columns are keys.",
    tables=_tables,
    sketch=lambda record: AttentionSketch(record.parts),
    figures=("attention",),
)
