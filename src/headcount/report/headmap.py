"""HeadMap: one number per head for the terminal, a row for each site, whatever the width and the number of heads."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from headcount.heads import Head
from headcount.report.fitted import FittedTable

_MOST_BLOCKS = 3  # more than these are no map: one digit for each head then
_COLOURS = {"encoder": "cyan", "decoder": "magenta", "cross": "yellow", "text": "cyan", "vision": "green"}


def colour(kind: str) -> str:
    return _COLOURS.get(kind, "blue")


class HeadMap:
    """Values with all their digits in up to three blocks of heads; in more they would be hard to read, and every head
    gets one digit from 0 to 9 instead, with a legend."""

    def __init__(self, values: Mapping[str, float], *, signed: bool = False, starred: Collection[str] | None = None):
        """signed: + or - always; starred: heads that get a star, if there can be any."""
        self._values = {Head.parse(name): value for name, value in values.items()}
        self._signed, self._starred = signed, None if starred is None else set(map(Head.parse, starred))
        self._largest = max(map(abs, self._values.values()), default=0.0) or 1.0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        exact = self._table({head: f"{value:{self._sign}.{self._decimals}f}" for head, value in self._values.items()})
        if 1 <= len(exact.blocks(options.max_width)) <= _MOST_BLOCKS:
            yield exact
            return
        step = self._largest / 9
        yield self._table({head: f"{round(value / step):{self._sign}d}" for head, value in self._values.items()})
        yield Text(f"\ndigits: multiples of {step:.3g}, rounded; 9 stands for {self._largest:.3g}", style="dim")

    @property
    def _sign(self) -> str:
        return "+" if self._signed else ""

    @property
    def _decimals(self) -> int:
        """Decimals: 2, fewer for large values, more if the largest would have fewer than two digits."""
        for least, decimals in ((1000, 0), (100, 1), (0.1, 2)):
            if self._largest >= least:
                return decimals
        return next((decimals for decimals in range(3, 9) if self._largest >= 10**-decimals * 10), 9)

    def _table(self, spelled: Mapping[Head, str]) -> FittedTable:
        table = FittedTable(gaps=(2, 1))
        table.add_column("site", no_wrap=True)
        indices = sorted({head.index for head in spelled})  # not up to the largest: a record can name any number
        width = max(map(len, (*map(str, indices), *spelled.values())), default=0)
        for index in indices:  # aligned by hand: a star sticks out to the right
            table.add_column(f"{index:>{width}}", no_wrap=True)
        for kind, layer in dict.fromkeys(head.site for head in spelled):
            heads = [Head(kind, layer, index) for index in indices]
            cells = [self._cell(head, f"{spelled[head]:>{width}}") if head in spelled else Text("") for head in heads]
            table.add_row(Text(f"{kind}.{layer}", style=colour(kind)), *cells)
        return table

    def _cell(self, head: Head, number: str) -> Text:
        if self._starred is None:
            share = abs(self._values[head]) / self._largest
            return Text(number, style="bold red" if share > 0.3 else "" if share > 0.03 else "dim")
        starred = head in self._starred
        return Text(f"{number}{'*' if starred else ' '}", style="bold red" if starred else "")
