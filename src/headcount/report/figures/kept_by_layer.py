"""How many heads of each layer are left in models of different sizes (Voita et al. 2019, Figure 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from headcount.heads import Head
from headcount.record import Record
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, named


def _draw(records: Sequence[Record]) -> Drawing:
    canvas, axes = panels(len(records), width=4.4, height=3.2, columns=2)
    rows: list[dict[str, Any]] = []
    for record, plot in zip(records, axes, strict=True):
        points = record.parts["tradeoff"]
        way = "l0" if any(point["way"] == "l0" for point in points) else points[0]["way"]
        mine = sorted((point for point in points if point["way"] == way), key=lambda p: (-p["keep"], p["seed"]))
        counts = [Counter(f"{Head.parse(name).kind}.{Head.parse(name).layer}" for name in p["heads"]) for p in mine]
        kinds = list(record.parts["of"])
        layers = {Head.parse(name).site for point in points for name in point["heads"]}
        sites = [f"{kind}.{layer}" for kind, layer in sorted(layers, key=lambda site: (kinds.index(site[0]), site[1]))]
        table = [[found[site] for found in counts] for site in sites]
        image = plot.imshow(table, cmap="viridis", aspect="auto", vmin=0)
        plot.set_yticks(range(len(sites)), sites)
        plot.set_xticks(range(len(mine)), [str(point["keep"]) for point in mine])
        plot.set_xlabel("heads asked for, one column per model")
        plot.set_title(f"{named(record)}, {way}")
        canvas.colorbar(image, ax=plot, label="heads left")
        rows += [
            {"model": record.signature.model, "way": way, "keep": p["keep"], "seed": p["seed"], "site": s, "left": f[s]}
            for p, f in zip(mine, counts, strict=True)
            for s in sites
        ]
    return Drawing(canvas, "Heads left in each layer and kind of attention, one column per pruned model.", rows)


FIGURE = Figure("Heads left by layer", "Voita et al. 2019, Figure 10", ("tradeoff", "of"), _draw)
