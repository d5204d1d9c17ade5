"""Gates during training: the mean of each at the end, and the numbers of open, expected and settled gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.record import Record
from headcount.record.results.prune import Gates
from headcount.report.canvas import head_map, panels
from headcount.report.figure import Drawing, Figure, named, origin
from headcount.report.palette import BLUE, GREEN, ORANGE


def _draw(records: Sequence[Record]) -> Drawing:
    canvas, axes = panels(2 * len(records), width=3.8, height=2.8, columns=2)
    rows: list[dict[str, Any]] = []
    for number, record in enumerate(records):
        gates: Gates = record.parts.gates
        course, last = axes[2 * number], axes[2 * number + 1]
        steps = [point.step for point in gates.trace]
        style: dict[str, Any] = {"marker": "o"} if len(steps) == 1 else {}  # a line of one point is not seen
        course.plot(steps, [point.open for point in gates.trace], color=BLUE, label="open", **style)
        expected = [point.expected for point in gates.trace if point.expected is not None]
        if expected:
            course.plot(steps, expected, color=ORANGE, label="expected", **style)
        settled = [len(gates.means) * point.settled for point in gates.trace]
        course.plot(steps, settled, color=GREEN, linestyle=":", label="settled", **style)
        course.set(xlabel="step", ylabel="gates", title=named(record, records))
        course.locator_params(axis="x", integer=True)
        course.legend()
        image = head_map(last, gates.means)
        image.set_clim(0, 1)
        canvas.colorbar(image, ax=last, shrink=0.85, pad=0.02)
        last.set_title("mean of each gate at the end")
        rows += [
            {**origin(record), "head": head, "mean": mean, "logit": gates.values[head]}
            for head, mean in gates.means.items()
        ]
    caption = (
        "Gates during training: how many are open at test time, expected to be open, and settled; the mean of "
        "each gate at the end."
    )
    return Drawing(canvas, caption, rows)


FIGURE = Figure("Gates during training", "Beyond the papers", ("gates.trace", "gates.means"), _draw)
