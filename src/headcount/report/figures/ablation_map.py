"""The change of a metric without each head, as a map of all heads (Michel et al. 2019, Table 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from headcount.record import Record
from headcount.report.canvas import by_site, head_map, panels
from headcount.report.figure import Drawing, Figure, each, judged, metrics, named
from headcount.report.table import digits_for


def _draw(records: Sequence[Record]) -> Drawing:
    sites = [by_site(record.parts.one_out) for record in records]
    across = max(len(heads) for grid in sites for heads in grid.values())
    canvas, axes = panels(len(records), width=1.2 + 0.5 * across, height=0.9 + 0.42 * max(map(len, sites)), columns=2)
    rows = []
    for record, plot in zip(records, axes, strict=True):
        parts, effects = record.parts, record.parts.one_out
        alpha = parts.alpha
        sign = 1 if parts.higher_is_better else -1  # losses are red
        digits = _digits(max(abs(effect.difference) for effect in effects.values()))
        tested = not parts.distance  # a distance is never zero, so a test is meaningless
        texts = {
            name: f"{_signed(effect.difference, digits)}{'*' if tested and effect.corrected < alpha else ''}"
            for name, effect in effects.items()
        }
        values = {name: sign * effect.difference for name, effect in effects.items()}
        head_map(plot, values, colours="RdBu", centre=0.0, texts=texts)
        value = f"{parts.value:.{digits_for(parts.value)}f}"
        plot.set_title(f"{named(record, records)}\n{parts.metric} {value} with all heads")
        rows += [{**judged(record), "head": name, **asdict(effect)} for name, effect in effects.items()]
    caption = f"Change of {metrics(records)} when each head is masked alone; red: worse without it."
    tests = [f"{record.parts.alpha:g}" for record in records if not record.parts.distance]
    if tests:
        caption += f" * p < {each(tests)} after Holm's correction for all heads."
    return Drawing(canvas, caption, rows)


def _digits(largest: float) -> int:
    """Decimals: two, up to four if all changes are small."""
    return 2 if largest >= 0.1 or not largest else 3 if largest >= 0.01 else 4


def _signed(value: float, digits: int) -> str:
    """A signed number without sign if it rounds to zero, and without the leading zero if there is little room."""
    text = f"{value:+.{digits}f}"
    if float(text) == 0:
        return "0" if digits > 2 else text[1:]
    return text.replace("0.", ".", 1) if digits > 2 else text


FIGURE = Figure("Every head masked alone", "Michel et al. 2019, Table 1", ("one_out",), _draw)
