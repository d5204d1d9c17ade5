"""Remaining heads of each layer in models of different sizes (Voita et al. 2019, Figure 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.heads import Head
from headcount.record import Record
from headcount.record.results.tradeoff import Tradeoff
from headcount.report.canvas import panels, without_frame
from headcount.report.figure import Drawing, Figure, origin
from headcount.report.groups import group_name, grouped
from headcount.report.points import NONE_FINISHED, shown_way, way_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Column = tuple[int, int | None, Mapping[str, float]]  # remaining heads, seed, remaining heads by site


def _draw(records: Sequence[Record]) -> Drawing:
    groups = grouped(records, lambda record: (shown_way(record.parts), tuple(record.parts.heads_by_site.items())))
    tallest = max(len(record.parts.heads_by_site) for record in records)
    canvas, axes = panels(len(groups), width=4.4, height=1.1 + 0.26 * tallest, columns=2)
    rows: list[dict[str, Any]] = []
    for group, plot in zip(groups, axes, strict=True):
        way, by_site = shown_way(group[0].parts), group[0].parts.heads_by_site
        columns = _columns(group[0], way) if len(group) == 1 else _mean_columns(group, way)
        left = [(f"{sum(counts.values()):g}", counts) for _, _, counts in columns]  # of all kinds
        _table(plot, list(by_site), [("all", by_site), *left])
        plot.set_title(f"{group_name(group, records)}, {way_heading(group[0].parts, way)}")
        plot.set_xlabel("heads left, one column per model" if len(group) == 1 else "heads left, mean over models")
        row = {**origin(group[0]), "model": group_name(group, records), "models": len(group), "way": way}
        rows += [
            {**row, "keep": keep, "seed": seed, "site": site, "left": counts.get(site, 0)}
            for keep, seed, counts in columns
            for site in by_site
        ]
    several = "; several models of the same data as the mean of their seeds" if len(groups) < len(records) else ""
    caption = f"Heads left in each layer and kind of attention, one column per pruned model{several}."
    return Drawing(canvas, caption, rows)


def _columns(record: Record[Tradeoff], way: str) -> list[_Column]:
    points = sorted(
        (point for point in record.parts.points if point.way == way), key=lambda point: (-point.keep, point.seed)
    )
    return [(point.keep, point.seed, Counter(map(_site, point.heads))) for point in points]


def _mean_columns(records: Sequence[Record[Tradeoff]], way: str) -> list[_Column]:
    """A column for each number of remaining heads: the mean over models of the mean over their seeds."""
    by_model = [_columns(record, way) for record in records]
    shared_keeps = set.intersection(*({keep for keep, _, _ in columns} for columns in by_model))

    def mean_left(keep: int, site: str) -> float:
        of_models = [np.mean([counts.get(site, 0) for of, _, counts in columns if of == keep]) for columns in by_model]
        return float(np.mean(of_models))

    sites = records[0].parts.heads_by_site
    return [
        (keep, None, {site: mean_left(keep, site) for site in sites}) for keep in sorted(shared_keeps, reverse=True)
    ]


def _site(name: str) -> str:
    head = Head.parse(name)
    return f"{head.kind}.{head.layer}"


def _table(plot: Axes, sites: Sequence[str], columns: Sequence[tuple[str, Mapping[str, float]]]) -> None:
    """A square for each layer of each model with its number of heads; darker means more."""
    numbers = [[counts_by_site.get(site, 0) for _, counts_by_site in columns] for site in sites]
    most = max(max(row) for row in numbers) or 1
    plot.imshow(numbers, cmap="Blues", aspect="auto", vmin=0, vmax=1.8 * most)  # black text is readable on all of them
    for row, line in enumerate(numbers):
        for column, number in enumerate(line):
            style: dict[str, Any] = {"ha": "center", "va": "center", "size": 7, "color": "black", "in_layout": False}
            plot.text(column, row, f"{number:.3g}" if number % 1 == 0 else f"{number:.1f}", **style)
    for number, (site, before) in enumerate(zip(sites[1:], sites[:-1], strict=True)):
        if Head.parse(f"{site}.0").kind != Head.parse(f"{before}.0").kind:
            plot.axhline(number + 0.5, color="white", linewidth=3)
    plot.set_yticks(range(len(sites)), sites)
    plot.set_xticks(range(len(columns)), [label for label, _ in columns])
    without_frame(plot)


_PARTS = ("points", "heads_by_site")
FIGURE = Figure("Heads left by layer", "Voita et al. 2019, Figure 10", _PARTS, _draw, NONE_FINISHED)
