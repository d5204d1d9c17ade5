"""Canvases of figures, and shapes that several figures draw. Knows matplotlib, not records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.heads import Head

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def panels(count: int = 1, *, width: float = 3.4, height: float = 2.6, columns: int = 3) -> tuple[Canvas, list[Axes]]:
    """Panels side by side, in rows of at most `columns`; width and height of each in inches."""
    from matplotlib.figure import Figure as Canvas

    across = min(count, columns)
    down = -(-count // across)
    canvas = Canvas(figsize=(width * across, height * down), layout="constrained")
    grid = canvas.subplots(down, across, squeeze=False).flatten()
    for empty in grid[count:]:
        empty.set_axis_off()
    return canvas, list(grid[:count])


def shared_legend(canvas: Canvas, axes: Sequence[Axes], columns: int) -> None:
    """One legend below all panels, each label once, in at most so many columns."""
    handles = {label: handle for plot in axes for handle, label in zip(*plot.get_legend_handles_labels(), strict=True)}
    canvas.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=min(columns, len(handles)))


def without_frame(axes: Axes) -> None:
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def by_site(values: Mapping[str, object]) -> dict[str, dict[int, Any]]:
    """Values by head name as site -> number of the head -> value, in the order given."""
    sites: dict[str, dict[int, Any]] = {}
    for name, value in values.items():
        head = Head.parse(name)
        sites.setdefault(f"{head.kind}.{head.layer}", {})[head.index] = value
    return sites


def head_map(
    axes: Axes,
    values: Mapping[str, float],
    *,
    colours: str = "viridis",
    centre: float | None = None,
    texts: Mapping[str, str] | None = None,
) -> Any:
    """A map with one square per head and a row per site. centre: the value shown as white. texts: texts in squares."""
    from matplotlib.colors import TwoSlopeNorm

    sites = by_site(values)
    across = 1 + max(number for heads in sites.values() for number in heads)
    table = np.full((len(sites), across), np.nan)
    for row, heads in enumerate(sites.values()):
        for number, value in heads.items():
            table[row, number] = value
    scale = None
    if centre is not None:
        reach = max(float(np.nanmax(np.abs(table - centre))), 1e-12)
        scale = TwoSlopeNorm(centre, centre - reach, centre + reach)
    image = axes.imshow(table, cmap=colours, norm=scale, aspect="equal")
    axes.set_yticks(range(len(sites)), list(sites))
    axes.set_xticks(range(across), [str(number) for number in range(across)])
    axes.set_xlabel("head")
    without_frame(axes)
    rows = {site: row for row, site in enumerate(sites)}
    shades: Any = image.cmap(image.norm(table))  # [rows, columns, RGBA]
    for name, text in (texts or {}).items():
        head = Head.parse(name)
        row = rows[f"{head.kind}.{head.layer}"]
        red, green, blue, _ = shades[row, head.index]
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
        style: dict[str, Any] = {"ha": "center", "va": "center", "color": "white" if dark else "black", "size": 7}
        axes.text(head.index, row, text, **style, in_layout=False)  # inside a square: needs no extra room
    return image


def band(axes: Axes, x: Sequence[float], points: Sequence[Any], **style: Any) -> None:
    """A line through the values of points with their 95% intervals as a band; points have value, low and high."""
    (line,) = axes.plot(x, [point.value for point in points], **style)
    low, high = [point.low for point in points], [point.high for point in points]
    axes.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
