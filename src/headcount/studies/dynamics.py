"""Dynamics (Michel et al. 2019, section 6): when in training heads become dispensable.

The pruning curve of every epoch of a training run: what share of its own score a model keeps as heads go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.progress import Progress, named, silent
from headcount.pruning.ranking import Order, Step, counts_to, curve
from headcount.record import Record, Signature
from headcount.record.result import Claim, Finding
from headcount.record.results.dynamics import Dynamics, Epoch, EpochStep
from headcount.sites.locate import locate
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Task


def epochs_of(folder: Path, numbers: Sequence[int] | None = None) -> dict[int, Path]:
    """The checkpoints of a training run by epoch: folders named by number, as `headcount train` leaves them.

    wanted: epochs to take, all if not given.
    """
    root = folder / "epochs" if (folder / "epochs").is_dir() else folder
    by_epoch = {int(path.name): path for path in sorted(root.glob("*")) if path.name.isdecimal()}
    if not by_epoch:
        raise UsageError(f"{folder} has no checkpoints named by epoch (001, 002, ...), also not under epochs/.")
    missing = [epoch for epoch in numbers or () if epoch not in by_epoch]
    if missing:
        raise UsageError(f"{folder} has no epoch {missing[0]}; it has {min(by_epoch)} to {max(by_epoch)}.")
    return {epoch: path for epoch, path in by_epoch.items() if numbers is None or epoch in numbers}


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
) -> Record[Dynamics]:
    """Prune every epoch's model by its own scores and measure after each step."""
    epochs: list[Epoch] = []
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
        epochs.append(_epoch(epoch, steps, locate(model).kinds))
    if metric is None:
        raise UsageError("There are no checkpoints to prune.")
    parts = Dynamics(
        metric=metric.name,
        higher_is_better=metric.higher_is_better,
        order=order,
        measured_on=measured_on([task], measure_on or task),
        by_epoch=tuple(epochs),
        claims=_claims(epochs),
    )
    arguments = {"order": order, "step": step, "measured_on": (measure_on or task).fingerprint}
    return Record("dynamics", Signature(name, "", task.fingerprint, arguments=arguments), parts)


def _epoch(epoch: int, steps: Sequence[Step], kinds: Sequence[str]) -> Epoch:
    quality = steps[0].quality
    points = []
    for step in steps:
        point = step.to_result(kinds)
        kept_share = _kept(point.value, quality.value, quality.metric.higher_is_better)
        points.append(
            EpochStep(point.removed, point.share, point.value, point.low, point.high, point.kept_by_kind, kept_share)
        )
    return Epoch(epoch, quality.value, tuple(points))


def _kept(value: float, base: float, higher_is_better: bool) -> float:
    """Share of the unpruned score that is left; of a loss or perplexity, how much of it was there before."""
    over, under = (value, base) if higher_is_better else (base, value)
    return over / under if under else float("nan")


_ALIKE = 0.05  # bends that differ by less are the same: a curve has about ten points, each with its own noise


def _claims(epochs: Sequence[Epoch]) -> tuple[Claim, ...]:
    """Early epochs fall in a straight line, late ones keep most of their score up to 40%."""
    shares = {epoch.epoch: epoch.kept_at(0.4) for epoch in epochs}
    bend = {epoch.epoch: _bend(epoch) for epoch in epochs}
    early, late = epochs[0].epoch, epochs[-1].epoch
    straighter = abs(bend[late]) - abs(bend[early])
    grown = {epoch: share for epoch, share in shares.items() if epoch >= 10}
    return (
        Claim(
            "with 40% of the heads gone, late epochs keep more of their score than early ones",
            holds=_or_zero(shares[late]) > _or_zero(shares[early]),
            evidence=_findings(shares),
        ),
        Claim(
            "early epochs fall more nearly in a straight line than late ones",
            holds=None if abs(straighter) < _ALIKE else straighter > 0,
            evidence=_findings(bend),  # see _bend
        ),
        Claim(
            "from epoch 10 on, 40% pruned keeps 85 to 90% of the score",
            holds=all(_or_zero(share) >= 0.85 for share in grown.values()) if grown else None,
            evidence=_findings(grown),
        ),
    )


def _findings(values: Mapping[int, float]) -> tuple[Finding, ...]:
    return tuple(Finding(f"epoch {epoch}", value) for epoch, value in values.items())


def _or_zero(value: float) -> float:
    return 0.0 if np.isnan(value) else value


def _bend(epoch: Epoch) -> float:
    """How far a curve lies above (or below) the straight line between its ends at most, as a share of its fall."""
    shares = np.array([point.share for point in epoch.points])
    values = np.array([point.value for point in epoch.points])
    straight = values[0] + (values[-1] - values[0]) * shares / shares[-1]
    fall = values[0] - values[-1]
    away = (values - straight) / fall if fall else np.zeros_like(values)
    return float(away[int(np.argmax(np.abs(away)))])
