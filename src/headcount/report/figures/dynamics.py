"""When in training heads become dispensable (Michel et al. 2019, Figure 5): by epoch, and by share of heads pruned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.record import Record
from headcount.record.results.dynamics import Dynamics, Epoch, EpochStep
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure, judged, named, picked
from headcount.report.palette import MARKERS
from headcount.report.table import digits_for


def _draw(records: Sequence[Record]) -> Drawing:
    import matplotlib

    colours = matplotlib.colormaps["viridis"]
    canvas, axes = panels(2 * len(records), width=4.4, height=3.2, columns=2)
    rows: list[dict[str, Any]] = []
    for number, record in enumerate(records):
        left, right = axes[2 * number : 2 * number + 2]
        epochs = record.parts.by_epoch
        shares = [point.share for point in epochs[0].points]
        numbers = [line.epoch for line in epochs]
        for index, share in enumerate(shares[1:-1], start=1):
            values = [_drawn(record.parts, line, line.points[index]) for line in epochs]
            style: dict[str, Any] = {
                "color": colours(0.9 * index / len(shares)),
                "marker": MARKERS[index % len(MARKERS)],
            }
            left.plot(numbers, values, label=f"{100 * share:.0f}%", **style)
        left.set(xlabel="epoch", title=named(record, records))
        left.set_xticks([epoch for epoch in numbers if epoch >= 1] or numbers)
        left.set_ylabel(_label(record.parts))
        left.legend(title="pruned", loc="upper left", bbox_to_anchor=(1, 1))
        for index, line in enumerate(epochs):
            style = {"color": colours(0.9 * index / len(epochs)), "marker": MARKERS[index % len(MARKERS)]}
            label = f"{line.epoch:g} ({line.value:.{max(1, digits_for(line.value) - 1)}f})"
            values = [_drawn(record.parts, line, point) for point in line.points]
            right.plot([100 * share for share in shares], values, label=label, **style)
            row = {**judged(record), "epoch": line.epoch}
            rows += [
                {**row, **picked(point, "share", "value"), **_compared(record.parts, line, point)}
                for point in line.points
            ]
        right.set(xlabel="heads pruned (%)", title=named(record, records))
        right.set_ylabel(_label(record.parts))
        right.legend(title=f"epoch ({record.parts.metric})", loc="upper left", bbox_to_anchor=(1, 1))
    caption = (
        "The score when an epoch's heads are masked by its own scores, against that with all heads: the share that is "
        "left or, where lower is better, how many times as large it is; by epoch (left, one line per share pruned) "
        "and by share pruned (right, one line per epoch)."
    )
    return Drawing(canvas, caption, rows)


def _compared(parts: Dynamics, epoch: Epoch, point: EpochStep) -> dict[str, float]:
    if parts.higher_is_better:
        return {"kept_share": epoch.share_left(point)}
    return {"times_unpruned": epoch.multiple(point)}


def _drawn(parts: Dynamics, epoch: Epoch, point: EpochStep) -> float:
    """A score as a percentage of that with all heads; where lower is better, as a multiple of it."""
    return 100 * epoch.share_left(point) if parts.higher_is_better else epoch.multiple(point)


def _label(parts: Dynamics) -> str:
    if parts.higher_is_better:
        return f"% of the epoch's own {parts.metric} kept"
    return f"{parts.metric} / {parts.metric} with all heads"


FIGURE = Figure("Pruning during training", "Michel et al. 2019, Figure 5", ("by_epoch",), _draw)
