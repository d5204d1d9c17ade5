"""How many heads of each layer are left in models of different sizes (Voita et al. 2019, Figure 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headcount.heads import Head
from headcount.record import Record
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, named
from headcount.report.points import shown_way

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _draw(records: Sequence[Record]) -> Drawing:
    tallest = max(len(record.parts.heads_by_site) for record in records)
    canvas, axes = panels(len(records), width=4.4, height=1.1 + 0.26 * tallest, columns=2)
    rows: list[dict[str, Any]] = []
    for record, plot in zip(records, axes, strict=True):
        points, way = record.parts.points, shown_way(record.parts)
        mine = sorted((point for point in points if point.way == way), key=lambda p: (-p.keep, p.seed))
        counts = [Counter(_site(name) for name in point.heads) for point in mine]
        sites = list(record.parts.heads_by_site)
        columns = [(str(point.keep), counts_by_site) for point, counts_by_site in zip(mine, counts, strict=True)]
        columns.insert(0, ("all", Counter(record.parts.heads_by_site)))
        _table(plot, sites, columns)
        plot.set_title(f"{named(record)}, {way}")
        rows += [
            {"model": record.signature.model, "way": way, "keep": p.keep, "seed": p.seed, "site": s, "left": f[s]}
            for p, f in zip(mine, counts, strict=True)
            for s in sites
        ]
    return Drawing(canvas, "Heads left in each layer and kind of attention, one column per pruned model.", rows)


def _site(name: str) -> str:
    head = Head.parse(name)
    return f"{head.kind}.{head.layer}"


def _table(plot: Axes, sites: Sequence[str], columns: Sequence[tuple[str, Counter[str]]]) -> None:
    """A square for each layer of each model with the number of its heads, darker the more there are."""
    numbers = [[counts_by_site[site] for _, counts_by_site in columns] for site in sites]
    most = max(max(row) for row in numbers) or 1
    plot.imshow(numbers, cmap="Blues", aspect="auto", vmin=0, vmax=1.8 * most)  # black is read on all of them
    for row, line in enumerate(numbers):
        for column, number in enumerate(line):
            style: dict[str, Any] = {"ha": "center", "va": "center", "size": 7, "color": "black", "in_layout": False}
            plot.text(column, row, str(number), **style)
    for number, (site, before) in enumerate(zip(sites[1:], sites[:-1], strict=True)):
        if Head.parse(f"{site}.0").kind != Head.parse(f"{before}.0").kind:
            plot.axhline(number + 0.5, color="white", linewidth=3)
    plot.set_yticks(range(len(sites)), sites)
    plot.set_xticks(range(len(columns)), [label for label, _ in columns])
    plot.set_xlabel("heads left, one column per model")
    plot.tick_params(length=0)
    plot.spines[:].set_visible(False)


FIGURE = Figure("Heads left by layer", "Voita et al. 2019, Figure 10", ("points", "heads_by_site"), _draw)
