"""Table: rows that the page and the terminal both show. Knows numbers and how many digits they deserve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column; digits: after the point, none for text and whole numbers."""

    name: str
    digits: int | None = None
    signed: bool = False  # changes: + or - always

    def text(self, value: Any) -> str:
        if value is None:
            return "\u2013"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if self.digits is None or not isinstance(value, int | float):
            return str(value)
        if value and abs(value) < 0.5 * 10**-self.digits:
            return f"{value:+.0e}" if self.signed else f"{value:.0e}"
        text = f"{value:+.{self.digits}f}" if self.signed else f"{value:.{self.digits}f}"
        return text.replace("-", "\u2212")


@dataclass(frozen=True)
class Table:
    """A table with a title; note: what its signs mean, or what is left out."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    note: str = ""


def interval(low: float | None, high: float | None, digits: int) -> str:
    """A 95% interval as text."""
    if low is None or high is None:
        return "\u2013"
    column = Column("", digits)
    return f"{column.text(low)} to {column.text(high)}"


def digits_for(value: float) -> int:
    """Digits after the point that leave about three significant ones."""
    size = abs(value)
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 3
