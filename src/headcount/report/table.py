"""Table: rows for the page and the terminal, with number formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from math import isnan
from typing import Any, Protocol

Rows = Sequence[Sequence[Any]]
_NO_CHANGE = 1e-12  # a difference below this is of rounding
_ENDS = 10  # rows of a long table shown at each end


@dataclass(frozen=True)
class Column:
    """A column. digits: decimals; None for text and integers."""

    name: str
    digits: int | None = None
    signed: bool = False  # always with + or -
    unit: str | None = None  # of large numbers with three digits: 1234567 -> 1.23M, with unit B 1.23MB

    def text(self, value: Any) -> str:
        if value is None or value != value:  # NaN
            return "\u2013"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if self.unit is not None:
            return f"{count(value)}{self.unit}"
        if self.digits is None or not isinstance(value, int | float):
            return str(value)
        if self.signed and abs(value) < _NO_CHANGE:
            value = 0.0
        if value and abs(value) < 0.5 * 10**-self.digits:
            text = f"{value:+.0e}" if self.signed else f"{value:.0e}"
        else:
            text = f"{value:+.{self.digits}f}" if self.signed else f"{value:.{self.digits}f}"
        return text.replace("-", "\u2212")


def headings(*columns: str | Column) -> list[Column]:
    """Columns; a name alone is a column of text or integers."""
    return [Column(column) if isinstance(column, str) else column for column in columns]


@dataclass(frozen=True)
class Table:
    """A table with a title.

    note: explanation below the table. ranked, grouped: how long tables of heads are shortened: to the first and last
    rows, or to the first rows of each value of the first column.
    """

    title: str
    columns: Sequence[Column]
    rows: Rows
    note: str = ""
    ranked: bool = False
    grouped: bool = False

    def shortened(self, hint: str) -> Table:
        """The table without middle rows, if it is long. hint: how to see the others."""
        if self.grouped:
            groups = groupby(self.rows, key=lambda row: row[0])
            rows = [row for _, group in groups for row in islice(group, _ENDS)]
            extent = f"The first {_ENDS} heads of each {self.columns[0].name}"
        elif self.ranked and len(self.rows) > 2 * _ENDS + 4:
            rows = [*self.rows[:_ENDS], *self.rows[-_ENDS:]]
            extent = f"The first {_ENDS} and the last {_ENDS} of {len(self.rows)} heads"
        else:
            return self
        if len(rows) == len(self.rows):
            return self
        return replace(self, rows=rows, note=f"{self.note} {extent}; {hint}.".strip())


class Bounded(Protocol):
    """An estimate with the ends of its 95% interval."""

    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def interval(estimate: Bounded | None, digits: int, *, scale: float = 1.0) -> str:
    """The 95% interval of an estimate as text; a dash if it has none."""
    low, high = (estimate.low, estimate.high) if estimate else (None, None)
    if low is None or high is None or isnan(low) or isnan(high):
        return "\u2013"
    column = Column("", digits)
    return f"{column.text(scale * low)} to {column.text(scale * high)}"


def parts_of_variance(variance: Mapping[str, float] | None, **names: str) -> str | None:
    """What a mean over runs varies with, such as `seeds 82%, examples 18%`; None if runs do not vary, as one alone.

    names: of sources, where they are others than models, seeds and examples.
    """
    parts = {source: part for source, part in (variance or {}).items() if part}
    total = sum(parts.values())
    if not parts.keys() - {"examples"} or not total > 0:
        return None
    return ", ".join(f"{names.get(source, source)} {part / total:.0%}" for source, part in parts.items())


def within(estimate: Bounded | None, digits: int) -> str:
    """An interval for a sentence: 95% 0.12 to 0.34, or that there is none."""
    bounds = interval(estimate, digits)
    return "no 95% interval" if bounds == "\u2013" else f"95% {bounds}"


def best_of(number: int) -> str:
    """What to add to the interval of the best of several: of eight alike, 12 to 16% leave out the truth."""
    return f"; as the best of {number}, it is optimistic" if number > 1 else ""


def lowest_of(number: int) -> str:
    """The same for the lowest of several."""
    return f"; as the lowest of {number}, it is pessimistic" if number > 1 else ""


def count(value: float) -> str:
    """1234567 -> 1.23M, with three significant digits."""
    value = float(f"{value:.3g}")  # 999,700 is 1M: rounded before the unit is chosen
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def was(number: int) -> str:
    """The verb of `1 of 8 heads`, and of more."""
    return "was" if number == 1 else "were"


def listed(items: Sequence[str], conjunction: str = "and") -> str:
    """a, b and c"""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {conjunction} {items[-1]}"


def digits_for(value: float) -> int:
    """Decimals for about three significant digits."""
    size = 0.0 if isnan(value) else abs(value)
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 3
