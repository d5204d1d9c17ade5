"""Dynamics (Michel et al. 2019, section 6): when in training heads become dispensable.

The pruning curve of every epoch of a training run: what share of its own score a model keeps as heads go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.progress import Progress, named, silent
from headcount.pruning.ranking import Order, counts_to, curve
from headcount.record import Record, Signature
from headcount.sites.locate import locate
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Task


def epochs_of(folder: Path, wanted: Sequence[int] | None = None) -> dict[int, Path]:
    """The checkpoints of a training run by epoch: folders named by number, as `headcount train` leaves them.

    wanted: epochs to take, all if not given.
    """
    place = folder / "epochs" if (folder / "epochs").is_dir() else folder
    found = {int(path.name): path for path in sorted(place.glob("*")) if path.name.isdecimal()}
    if not found:
        raise UsageError(f"{folder} has no checkpoints named by epoch (001, 002, ...), also not under epochs/.")
    missing = [epoch for epoch in wanted or () if epoch not in found]
    if missing:
        raise UsageError(f"{folder} has no epoch {missing[0]}; it has {min(found)} to {max(found)}.")
    return {epoch: path for epoch, path in found.items() if wanted is None or epoch in wanted}


def dynamics(
    checkpoints: dict[int, Path],
    load: Callable[[Path], nn.Module],
    task: Task,
    *,
    measure_on: Task | None = None,
    order: str = "gradient",
    step: float = 0.1,
    name: str = "",
    progress: Progress = silent,
) -> Record:
    """Prune every epoch's model by its own scores and measure after each step."""
    lines: list[dict[str, Any]] = []
    metric = None
    for epoch, folder in checkpoints.items():
        model = load(folder)
        total = len(locate(model).heads)
        steps = list(
            curve(
                model, task, Order(order), counts_to(total, total, step), measure_on=measure_on,
                progress=named(f"epoch {epoch}", progress),
            )
        )  # fmt: skip
        metric = steps[0].quality.metric
        whole = steps[0].quality.value
        points = [point.to_plain(locate(model).kinds) for point in steps]
        for point in points:
            point.pop("heads")
            point["kept_share"] = _kept(point["value"], whole, metric.higher_is_better)
        lines.append({"epoch": epoch, "value": whole, "points": points})
    if metric is None:
        raise UsageError("There are no checkpoints to prune.")
    parts = {
        "metric": metric.name,
        "higher_is_better": metric.higher_is_better,
        "order": order,
        "measured_on": measured_on([task], measure_on or task),
        "epochs": lines,
        "claims": _claims(lines),
    }
    arguments = {"order": order, "step": step, "measured_on": (measure_on or task).fingerprint}
    return Record("dynamics", Signature(name, "", task.fingerprint, arguments=arguments), parts)


def _kept(value: float, whole: float, higher_is_better: bool) -> float | None:
    """Share of the unpruned score that is left; of a loss or perplexity, how much of it was there before."""
    over, under = (value, whole) if higher_is_better else (whole, value)
    return over / under if under else None


_ALIKE = 0.05  # bends that differ by less are the same: a curve has about ten points, each with its own noise


def _claims(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Early epochs fall in a straight line, late ones keep most of their score up to 40%."""
    kept = {str(line["epoch"]): _kept_at(line, 0.4) for line in lines}
    bend = {str(line["epoch"]): _bend(line) for line in lines}
    early, late = str(lines[0]["epoch"]), str(lines[-1]["epoch"])
    straighter = abs(bend[late]) - abs(bend[early])
    grown = {epoch: share for epoch, share in kept.items() if int(epoch) >= 10}
    return [
        {
            "claim": "with 40% of the heads gone, late epochs keep more of their score than early ones",
            "holds": (kept[late] or 0) > (kept[early] or 0),
            "evidence": kept,
        },
        {
            "claim": "early epochs fall more nearly in a straight line than late ones",
            "holds": None if abs(straighter) < _ALIKE else straighter > 0,
            "evidence": bend,  # see _bend
        },
        {
            "claim": "from epoch 10 on, 40% pruned keeps 85 to 90% of the score",
            "holds": all((share or 0) >= 0.85 for share in grown.values()) if grown else None,
            "evidence": grown,
        },
    ]


def _kept_at(line: dict[str, Any], share: float) -> float | None:
    nearest = min(line["points"], key=lambda point: abs(point["share"] - share))
    return nearest["kept_share"]


def _bend(line: dict[str, Any]) -> float:
    """How far a curve lies above (or below) the straight line between its ends at most, as a share of its fall."""
    shares = np.array([point["share"] for point in line["points"]])
    values = np.array([point["value"] for point in line["points"]])
    straight = values[0] + (values[-1] - values[0]) * shares / shares[-1]
    fall = values[0] - values[-1]
    away = (values - straight) / fall if fall else np.zeros_like(values)
    return float(away[int(np.argmax(np.abs(away)))])
