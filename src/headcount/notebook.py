"""Small tables for Jupyter, as HTML. Knows text and numbers, nothing of heads or records.

All text is escaped. Colours are transparent, so that tables are readable on light and dark pages. They only repeat
the numbers in the cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_UP, _DOWN = "0,114,178", "213,94,0"  # blue and vermilion, safe for colour-blind readers
_DARKEST = 0.55  # opacity behind the largest number, so that text stays readable
_CELL = "padding:2px 6px;text-align:{side};white-space:nowrap"
_LONGEST = 60  # characters of a cell; the full text is in its tooltip
_LONGEST_BELOW = 160


@dataclass(frozen=True)
class Cell:
    """A cell: its text, its tooltip, and the strength of its colour from -1 to 1."""

    text: str
    tooltip: str = ""
    strength: float = 0.0


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[tuple[str, Sequence[Cell]]],
    *,
    side: str = "right",
    below: str = "",
) -> str:
    """An HTML table with a name for each row. side: alignment of cells. below: a line in small print."""
    head = "".join(_th(name, "col", side) for name in ("", *columns))
    lines = [_row(name, cells, side) for name, cells in rows]
    small = _small(below) if below else ""
    title = f'<caption style="text-align:left;caption-side:top">{escape(caption)}</caption>'
    header = f"<thead><tr>{head}</tr></thead>" if columns else ""
    body = (
        f'<table style="border-collapse:collapse;color:inherit">{title}{header}<tbody>{"".join(lines)}</tbody></table>'
    )
    return f'<div style="overflow-x:auto">{body}{small}</div>'


def _small(text: str) -> str:
    title = f' title="{escape(text)}"' if len(text) > _LONGEST_BELOW else ""
    return f'<div style="font-size:85%;opacity:.7"{title}>{escape(_cut(text, _LONGEST_BELOW))}</div>'


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"


def _row(name: str, cells: Sequence[Cell], side: str) -> str:
    return f"<tr>{_th(name, 'row', 'left')}{''.join(_td(cell, side) for cell in cells)}</tr>"


def strengths(values: Sequence[object]) -> list[float]:
    """Each number divided by the largest absolute value; 0 for values that are not finite numbers."""
    numbers = [_finite(value) for value in values]
    largest = max(map(abs, numbers), default=0.0) or 1.0
    return [number / largest for number in numbers]


def _finite(value: object) -> float:
    """A finite number, or 0."""
    try:
        number = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:  # a whole number of hundreds of digits
        return 0.0
    return number if math.isfinite(number) else 0.0


def _th(name: str, scope: str, side: str) -> str:
    return f'<th scope="{scope}" style="{_CELL.format(side=side)}">{escape(name)}</th>'


def _td(cell: Cell, side: str) -> str:
    style = _CELL.format(side=side)
    if cell.strength:
        colour = _UP if cell.strength > 0 else _DOWN
        style += f";background-color:rgba({colour},{_DARKEST * min(1.0, abs(cell.strength)):.2f})"
    text = _cut(cell.text, _LONGEST)
    tooltip = cell.tooltip or (cell.text if text != cell.text else "")
    title = f' title="{escape(tooltip)}"' if tooltip else ""
    return f'<td style="{style}"{title}>{escape(text)}</td>'
