"""FittedTable: a terminal table that is never truncated. Columns that do not fit go into blocks below each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

_LONGEST_WORD = 24  # columns; longer words, such as paths, are folded


@dataclass(frozen=True)
class Block:
    """Columns of one block with the width of each, and the spaces between them."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    gap: int


class FittedTable(Table):
    """A rich table in as few blocks of columns as fit the terminal; row by row if it is too narrow.

    Cells of columns with no_wrap stay in one line, others wrap between words; a column with min_width may be folded
    down to it. Texts are never parsed as markup.
    """

    def __init__(self, *, keys: int = 1, gaps: Sequence[int] = (2, 1), **options: Any) -> None:
        """keys: number of first columns that name a row, repeated in every block; gaps: spaces to try, widest first."""
        super().__init__(box=None, pad_edge=False, header_style="bold", **options)
        self._keys, self._gaps = keys, gaps

    def add_column(self, header: RenderableType = "", *args: Any, **options: Any) -> None:
        super().add_column(_text(header), *args, **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*(_text(cell) for cell in cells), **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        blocks = self.blocks(options.max_width)
        if not blocks:
            yield self._stacked(options.max_width)
        for number, block in enumerate(blocks):
            yield from [Text("")] if number else []
            yield self._drawn(block, top=number == 0, last=number == len(blocks) - 1)

    def blocks(self, width: int) -> list[Block]:
        """All columns in one block if possible, wrapped if necessary; else several blocks, each with the keys.

        Empty if the keys leave no room for some column.
        """
        indices = range(len(self.columns))
        longest = [_longest_line(column) for column in self.columns]
        for gap in self._gaps:
            if _taken(longest, gap) <= width:
                return [Block(tuple(indices), tuple(longest), gap)]
        gap, least = self._gaps[-1], [_least(column) for column in self.columns]
        keys, further = tuple(indices[: self._keys]), indices[self._keys :]
        room = width - sum(least[key] + gap for key in keys)
        if any(least[index] > room for index in further):
            return []
        blocks = []
        for run in _runs(further, [column_width + gap for column_width in least], room + gap):
            places = keys + run
            widths = [least[index] for index in places]
            spare = width - _taken(widths, gap)
            blocks.append(Block(places, _spread(widths, [longest[index] for index in places], spare), gap))
        return blocks

    def _stacked(self, width: int) -> Table:
        """Row by row, each as a list of columns with their values."""
        names = [str(column.header).strip().replace("\n", " ") for column in self.columns]
        longest_value = _longest_word(line for column in self.columns for line in _lines(column))
        room = max(_longest_word(names), min(max(map(cell_len, names)), width - 1 - longest_value))
        room = min(room, width - 2)
        stacked = self._plain(gap=1)
        stacked.show_header = False
        stacked.add_column(width=room, overflow="fold", style="bold")
        stacked.add_column(width=width - room - 1, overflow="fold")
        for number, cells in enumerate(zip(*(column.cells for column in self.columns), strict=True)):
            if number:
                stacked.add_row("", "")
            for name, cell in zip(names, cells, strict=True):
                stacked.add_row(Text(name), cell)
        stacked.title, stacked.caption = self.title, self.caption
        return stacked

    def _plain(self, gap: int) -> Table:
        return Table(
            box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style=self.header_style,
            title_justify=self.title_justify, caption_justify=self.caption_justify,
        )  # fmt: skip

    def _drawn(self, block: Block, *, top: bool, last: bool) -> Table:
        drawn = self._plain(block.gap)
        drawn.title, drawn.caption = self.title if top else None, self.caption if last else None
        for index, width in zip(block.columns, block.widths, strict=True):
            column = self.columns[index]
            drawn.add_column(
                column.header, justify=column.justify, style=column.style, width=width, overflow="fold", vertical="top"
            )
        for cells in zip(*(self.columns[index].cells for index in block.columns), strict=True):
            drawn.add_row(*cells)
        return drawn


def _text(cell: RenderableType | None) -> RenderableType:
    return Text(cell) if isinstance(cell, str) else cell or Text("")


def _lines(column: Column) -> Iterator[str]:
    for cell in column.cells:
        yield from str(cell).split("\n")


def _longest_line(column: Column) -> int:
    return max(map(cell_len, [*str(column.header).split("\n"), *_lines(column)]), default=0)


def _least(column: Column) -> int:
    """The smallest readable width of a column."""
    if column.min_width is not None:
        return min(column.min_width, _longest_line(column))
    header = _longest_word([str(column.header)])
    if column.no_wrap:
        return max(header, *map(cell_len, _lines(column)), 0)
    return max(header, _longest_word(_lines(column)))


def _longest_word(lines: Iterable[str]) -> int:
    return min(max((cell_len(word) for line in lines for word in line.split()), default=0), _LONGEST_WORD)


def _taken(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * max(0, len(widths) - 1)


def _spread(widths: Sequence[int], longest: Sequence[int], spare: int) -> tuple[int, ...]:
    """Distribute spare width to the columns that lack most."""
    spread = list(widths)
    for _ in range(spare):
        lacking = max(range(len(spread)), key=lambda index: longest[index] - spread[index])
        if longest[lacking] <= spread[lacking]:
            break
        spread[lacking] += 1
    return tuple(spread)


def _runs(columns: Sequence[int], widths: Sequence[int], room: int) -> list[tuple[int, ...]]:
    """Columns in as few runs as fit into the room, of similar length if possible."""
    runs: list[list[int]] = [[]]
    for column in columns:
        if runs[-1] and sum(widths[other] for other in runs[-1]) + widths[column] > room:
            runs.append([])
        runs[-1].append(column)
    length = -(-len(columns) // len(runs))
    even = [tuple(columns[start : start + length]) for start in range(0, len(columns), length)]
    if all(sum(widths[column] for column in run) <= room for run in even):
        return even
    return [tuple(run) for run in runs]
