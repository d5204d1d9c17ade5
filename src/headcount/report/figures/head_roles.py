"""Relevance, confidence and roles of heads, sorted in each layer by relevance (Voita et al. 2019, Figures 1, 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.heads import PAPER_ROLES, Head
from headcount.record import Record
from headcount.record.results.roles import Evidence, RolesFound
from headcount.report.canvas import without_frame
from headcount.report.figure import Drawing, Figure, named, origin
from headcount.report.palette import GREY, INK, role_colour
from headcount.report.verdicts import undecided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHORT = {
    "rarest": "rare", "two rarest": "rare", "another occurrence": "same", "itself": "self",
    "after the last time": "ind.", "punctuation": "punct", "diagonal": "diag", "monotone": "mono",
}  # fmt: skip
_CELL = 0.52  # inches
_LEAST_WIDTH = 3.2  # inches, of the map of functions: the labels of a few heads need room beside the axis


def _draw(records: Sequence[Record]) -> Drawing:
    from matplotlib.figure import Figure as Canvas

    panels = [(record, kind, layers) for record in records for kind, layers in _kinds(record).items()]
    maps = [name for name in ("relevance", "confidence") if any(_values(record.parts, name) for record in records)]
    across = max(len(heads) for _, _, layers in panels for heads in layers.values())
    narrow, wide = _CELL * 0.55 * across + 0.6, max(_LEAST_WIDTH, _CELL * across) + 0.2
    heights = [_CELL * len(layers) + 0.75 for _, _, layers in panels]
    canvas = Canvas(figsize=(narrow * len(maps) + wide + 0.6, sum(heights) + 0.45), layout="constrained")
    grid = canvas.add_gridspec(
        len(panels), len(maps) + 1, width_ratios=[narrow] * len(maps) + [wide], height_ratios=heights
    )
    rows: list[dict[str, Any]] = []
    for number, (record, kind, layers) in enumerate(panels):
        name = named(record, records)
        title = f"{name}, {kind}" if len(records) > 1 or len(_kinds(record)) > 1 else name
        measured = [measure for measure in maps if _values(record.parts, measure)]
        for measure in measured:
            axes = canvas.add_subplot(grid[number, maps.index(measure)])
            heading = f"{title}: {measure}" if measure == measured[0] else measure
            _heat(axes, layers, _values(record.parts, measure), across, heading)
        axes = canvas.add_subplot(grid[number, len(maps)])
        _functions(axes, layers, record.parts.roles, across)
        rows += _rows(record, layers)
    _legend(canvas, records)
    caption = (
        f"Heads of each layer, sorted by {_sorted_by(records)}; from left to right the most to the least. Purple: "
        "positional, with the offset; green: syntactic, with the relation; orange: rare tokens; grey: no role found. "
        "A head with several roles is divided; \u2026: it plays the role with more labels. Small numbers are heads."
    )
    return Drawing(canvas, caption, rows)


def _sorted_by(records: Sequence[Record]) -> str:
    measured = [bool(record.parts.relevance) for record in records]
    if not any(measured):
        return "confidence (no relevance was measured)"
    return "relevance" if all(measured) else "relevance, or by confidence where no relevance was measured"


def _values(parts: RolesFound, measure: str) -> Mapping[str, float]:
    """Relevance or confidence by head."""
    if measure == "relevance":
        return parts.relevance or {}
    return {head: interval.value for head, interval in parts.confidence.items()}


def _kinds(record: Record) -> dict[str, dict[int, list[str]]]:
    """kind -> layer -> names of its heads, sorted."""
    order = _values(record.parts, "relevance" if record.parts.relevance else "confidence")
    kinds: dict[str, dict[int, list[str]]] = {}
    for name in record.parts.confidence:
        head = Head.parse(name)
        kinds.setdefault(head.kind, {}).setdefault(head.layer, []).append(name)
    return {
        kind: {layer: sorted(names, key=lambda name: -order.get(name, 0.0)) for layer, names in layers.items()}
        for kind, layers in kinds.items()
    }


def _heat(axes: Axes, layers: Mapping[int, list[str]], values: Mapping[str, float], across: int, title: str) -> None:
    table = np.full((len(layers), across), np.nan)
    for row, names in enumerate(layers.values()):
        table[row, : len(names)] = [values.get(name, np.nan) for name in names]
    least, most = np.nanmin(table, initial=0), np.nanmax(np.abs(table), initial=0)
    if least < 0:
        image = axes.imshow(table, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")  # white: 0
    else:
        image = axes.imshow(table, cmap="Blues", vmin=0, aspect="auto")
    axes.figure.colorbar(image, ax=axes, shrink=0.85, pad=0.02)
    _frame(axes, layers, across, title)


def _functions(
    axes: Axes, layers: Mapping[int, list[str]], roles: Mapping[str, Sequence[Evidence]], across: int
) -> None:
    from matplotlib.patches import Rectangle

    axes.set_xlim(-0.5, across - 0.5)
    axes.set_ylim(len(layers) - 0.5, -0.5)
    for row, names in enumerate(layers.values()):
        for column, name in enumerate(names):
            lines = _shown(roles[name])
            for part, (role, text) in enumerate(lines or [("none", "")]):
                height = 1 / max(1, len(lines))
                corner = (column - 0.5, row - 0.5 + part * height)
                colour = role_colour(role) if role != "none" else GREY
                strength = 0.95 if role in PAPER_ROLES else 0.3 if role != "none" else 0.22
                axes.add_patch(Rectangle(corner, 1, height, color=colour, alpha=strength, linewidth=0))
                if text:
                    longest = max(map(len, text.split("\n")))
                    size = 6.5 if longest < 9 and len(lines) < 3 else 5.2 if longest < 11 else 4.4
                    light = "white" if role in ("positional", "syntactic") else INK
                    axes.text(column, corner[1] + height / 2, text, ha="center", va="center", color=light, size=size)
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="white", linewidth=1.5))
            axes.text(column + 0.46, row + 0.46, name.rpartition(".")[2], ha="right", va="bottom", color=INK, size=4.5)
    _frame(axes, layers, across, "function")


def _shown(held: Sequence[Evidence]) -> list[tuple[str, str]]:
    """At most three roles of a head with their labels, those of the paper first, each role once."""
    labels_of: dict[str, list[str]] = {}
    for evidence in sorted(held, key=lambda evidence: evidence.role not in PAPER_ROLES):
        label = evidence.label.replace("->", "\u2192")
        labels_of.setdefault(evidence.role, []).append(_SHORT.get(label, label))
    lines = []
    for role, labels in list(labels_of.items())[:3]:
        text = labels[0].replace(" ", "\n") if len(labels_of) == 1 else labels[0]
        lines.append((role, f"{text} \u2026" if len(set(labels)) > 1 else text))
    return lines


def _frame(axes: Axes, layers: Mapping[int, list[str]], across: int, title: str) -> None:
    axes.set_title(title)
    axes.set_yticks(range(len(layers)), [str(layer) for layer in layers])
    axes.set_xticks([])
    without_frame(axes)
    axes.set_ylabel("layer")
    axes.set_xlim(-0.5, across - 0.5)


def _legend(canvas: Any, records: Sequence[Record]) -> None:
    from matplotlib.patches import Patch

    present = {evidence.role for record in records for held in record.parts.roles.values() for evidence in held}
    further_roles = [role for role in sorted(present) if role not in PAPER_ROLES]
    named_roles = [*PAPER_ROLES, *further_roles]
    patches = [
        Patch(color=role_colour(role), alpha=0.95 if role in PAPER_ROLES else 0.3, label=role) for role in named_roles
    ]
    patches.append(Patch(color=GREY, alpha=0.22, label="no role"))
    canvas.legend(handles=patches, loc="outside lower center", ncols=min(8, len(patches)))


def _rows(record: Record, layers: Mapping[int, list[str]]) -> list[dict[str, Any]]:
    relevance = record.parts.relevance or {}
    evidence = record.parts.evidence
    return [
        {
            **origin(record),
            "head": name,
            "relevance": relevance.get(name),
            "confidence": record.parts.confidence[name].value,
            "roles": "; ".join(f"{played_role.role} {played_role.label}" for played_role in record.parts.roles[name]),
            "without_verdict": "; ".join(undecided(evidence.get(name, ()))),
        }
        for names in layers.values()
        for name in names
    ]


FIGURE = Figure("What heads do", "Voita et al. 2019, Figures 1 and 2", ("confidence", "roles"), _draw)
