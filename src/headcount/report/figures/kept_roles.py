"""Roles of the remaining encoder heads, one column per pruned model (Voita et al. 2019, Figure 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headcount.heads import PAPER_ROLES, Head
from headcount.record import Record
from headcount.record.results.tradeoff import HeldRole
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, named, origin
from headcount.report.palette import GREY, INK, role_colour
from headcount.report.points import NONE_FINISHED, shown_way, way_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Held = Mapping[str, tuple[HeldRole, ...]]  # head -> roles it has
_STRIP = 0.2  # of a column's width, for the roles in the whole model
_GAP = 0.08


def _draw(records: Sequence[Record]) -> Drawing:
    columns = [_columns(record) for record in records]
    tallest = max(len(held) for column in columns for _, held in column)
    widest = max(len(column) for column in columns)
    canvas, axes = panels(
        len(records), width=max(4.6, 1.2 + 0.5 * widest), height=1.5 + max(0.13, min(0.24, 6 / tallest)) * tallest,
        columns=2,
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for record, plot, column in zip(records, axes, columns, strict=True):
        roles_before = record.parts.whole_roles
        for index, (_, held) in enumerate(column):
            for height, head in enumerate(_ordered(held)):
                _box(plot, index, height, held[head], roles_before[head] if index else None)
        _frame(plot, record, named(record, records), [label for label, _ in column], tallest)
        rows += _rows(record)
    _legend(
        canvas,
        {
            role
            for column in columns
            for _, held in column
            for evidence in held.values()
            for role in _shown(evidence)[0]
        },
    )
    trees = " and ".join(dict.fromkeys(_looked(record) for record in records))
    caption = (
        "Remaining heads of the encoder (or only stack), one column per model, ordered by their role there; "
        "colours as in the paper, a number if a head has several functions. The strip on the left of a head is "
        f"its role in the whole model; a frame marks heads where the two differ. Measured on {trees}."
    )
    return Drawing(canvas, caption, rows)


def _looked(record: Record) -> str:
    looked = record.parts.looked
    return f"{looked.sentences} sentences, {looked.trees or 'none'} with trees"


def _way(record: Record) -> tuple[str, int]:
    """The way and seed whose models are shown."""
    way = shown_way(record.parts)
    return way, next(point.seed for point in record.parts.points if point.way == way)


def _columns(record: Record) -> list[tuple[str, Held]]:
    """The whole model, then smaller ones: number of remaining heads of the kind, and their roles."""
    roles_before: Held = record.parts.whole_roles
    points = [p for p in record.parts.points if (p.way, p.seed) == _way(record) and p.roles is not None]
    ordered = sorted(points, key=lambda point: -len(point.roles))
    return [(f"all {len(roles_before)}", roles_before), *((str(len(point.roles)), point.roles) for point in ordered)]


def _shown(held: Sequence[HeldRole]) -> tuple[list[str], int]:
    """Roles to colour (those of the paper if a head has any), and the number of labels."""
    names = {evidence.role for evidence in held}
    roles = [role for role in PAPER_ROLES if role in names] or sorted(names)
    return roles, len({(evidence.role, evidence.label) for evidence in held if evidence.role in roles})


def _ordered(held: Held) -> list[str]:
    """Heads from the bottom of a column to its top: by role, then by name."""

    def key(name: str) -> tuple[int, int, Head]:
        roles, functions = _shown(held[name])
        rank = PAPER_ROLES.index(roles[0]) if roles and roles[0] in PAPER_ROLES else 3 if roles else 4
        return rank, -functions, Head.parse(name)

    return sorted(held, key=key)


def _box(plot: Axes, x: int, height: int, now: Sequence[HeldRole], before: Sequence[HeldRole] | None) -> None:
    """Draw one head. before: its roles in the whole model; None in the column of the whole model."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    roles, functions = _shown(now)
    left, width, bottom, tall = x - 0.5 + _GAP, 1 - 2 * _GAP, height + _GAP, 1 - 2 * _GAP
    if before is not None:
        _stripes(plot, _shown(before)[0], (left, bottom), _STRIP, tall)
    start = left if before is None else left + _STRIP + _GAP / 2
    _stripes(plot, roles, (start, bottom), left + width - start, tall)
    if functions > 1:
        style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "size": 7, "color": "black"}
        style["path_effects"] = [withStroke(linewidth=1.8, foreground="white")]  # on any colour
        plot.text((start + left + width) / 2, height + 0.48, str(functions), **style)
    if before is not None and {evidence.role for evidence in before} != {evidence.role for evidence in now}:
        plot.add_patch(Rectangle((left, bottom), width, tall, fill=False, edgecolor=INK, linewidth=1.0, zorder=3))


def _stripes(plot: Axes, roles: Sequence[str], corner: tuple[float, float], width: float, height: float) -> None:
    """A box with a stripe for each role, grey without any."""
    from matplotlib.patches import Rectangle

    for number, role in enumerate(roles or ["none"]):
        part = width / max(1, len(roles))
        at = (corner[0] + number * part, corner[1])
        plot.add_patch(Rectangle(at, part, height, color=_colour(role), alpha=_strength(role), linewidth=0))


def _colour(role: str) -> str:
    return GREY if role == "none" else role_colour(role)


def _strength(role: str) -> float:
    return 0.95 if role in PAPER_ROLES else 0.45 if role == "none" else 0.3


def _frame(plot: Axes, record: Record, name: str, labels: Sequence[str], tallest: int) -> None:
    plot.set_xlim(-0.6, len(labels) - 0.4)
    plot.set_ylim(0, tallest + 0.3)
    plot.set_xticks(range(len(labels)), labels)
    step = max(1, -(-tallest // 8))
    plot.set_yticks(range(0, tallest + 1, step))
    plot.tick_params(axis="x", length=0)
    plot.spines["bottom"].set_visible(False)
    kind = Head.parse(next(iter(record.parts.whole_roles))).kind
    plot.set(xlabel=f"{kind} heads left, one column per model", ylabel="heads")
    way, seed = _way(record)
    title = f"{name}, {record.parts.pruned}\npruned by {way_heading(record.parts, way)}"
    seeds = {point.seed for point in record.parts.points}
    plot.set_title(title if len(seeds) == 1 else f"{title}, seed {seed}", loc="left")


def _legend(canvas: Any, roles: set[str]) -> None:
    from matplotlib.patches import Patch

    drawn = [*PAPER_ROLES, *sorted(roles - {*PAPER_ROLES}), "none"]
    patches = [
        Patch(color=_colour(role), alpha=_strength(role), label="no role" if role == "none" else role, linewidth=0)
        for role in drawn
    ]
    patches.append(Patch(fill=False, edgecolor=INK, label="roles changed"))
    fitting = int(canvas.get_figwidth() / 1.5)  # inches that the longest label takes
    canvas.legend(handles=patches, loc="outside lower center", ncols=min(fitting, len(patches)))


def _rows(record: Record) -> list[dict[str, Any]]:
    """Every head of every model, of all ways and seeds."""
    roles_before: Held = record.parts.whole_roles
    rows = []
    for point in record.parts.points:
        for head, now in (point.roles or {}).items():
            before = roles_before.get(head, ())
            rows.append(
                {
                    **origin(record), "way": point.way, "keep": point.keep, "seed": point.seed,
                    "head": head, "roles_whole": _spelled(before), "roles_left": _spelled(now),
                    "changed": {evidence.role for evidence in before} != {evidence.role for evidence in now},
                }
            )  # fmt: skip
    return rows


def _spelled(held: Sequence[HeldRole]) -> str:
    return "; ".join(f"{evidence.role}: {evidence.label}" for evidence in held)


_WITHOUT = {**NONE_FINISHED, "whole_roles": "roles of the remaining heads were not measured (--roles)"}
_PARTS = ("points", "whole_roles", "looked")
FIGURE = Figure("Roles of the remaining heads", "Voita et al. 2019, Figure 8", _PARTS, _draw, _WITHOUT)
