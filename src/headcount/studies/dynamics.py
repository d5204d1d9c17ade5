"""Dynamics (Michel et al. 2019, section 6): when in training heads become dispensable.

The pruning curve of every epoch of a training run: the share of its score that a model keeps as heads are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torch import nn

from headcount.checkpoints.chosen_on import read_chosen_on
from headcount.errors import UsageError
from headcount.progress import Progress, named, silent
from headcount.pruning.ranking import Order, Step, counts_to, curve
from headcount.record import Record, Signature
from headcount.record.results.dynamics import Dynamics, Epoch, EpochStep
from headcount.sites.locate import locate
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Task


def epochs_of(folder: Path, numbers: Sequence[int] | None = None) -> dict[float, Path]:
    """The checkpoints of a training run by epoch: folders named by number, as `headcount train` leaves them.

    Checkpoints within the first epoch have fractions: 0.25. numbers: epochs to use. By default all.
    """
    root = folder / "epochs" if (folder / "epochs").is_dir() else folder
    named = [(path.name, path) for path in root.glob("*") if path.name.replace(".", "", 1).isdecimal()]
    by_epoch = dict(sorted((float(name), path) for name, path in named))
    if not by_epoch:
        raise UsageError(f"Neither {folder} nor its folder epochs/ has checkpoints named by epoch (001, 002, ...).")
    missing = [epoch for epoch in numbers or () if epoch not in by_epoch]
    if missing:
        raise UsageError(f"{folder} has no epoch {missing[0]}; it has {min(by_epoch):g} to {max(by_epoch):g}.")
    return {epoch: path for epoch, path in by_epoch.items() if numbers is None or epoch in numbers}


def dynamics(
    checkpoints: Mapping[float, Path],
    load: Callable[[Path], nn.Module],
    task: Task,
    *,
    measure_on: Task | None = None,
    order: str = "gradient",
    step: float = 0.1,
    name: str = "",
    progress: Progress = silent,
) -> Record[Dynamics]:
    """Prune every epoch's model by its own scores and measure after each step.

    The folders of the checkpoints say what the heads of a pruned model were chosen on before it was trained.
    """
    chosen_before = dict.fromkeys(part for folder in checkpoints.values() for part in read_chosen_on(str(folder)))
    epochs: list[Epoch] = []
    metric = None
    for epoch, folder in checkpoints.items():
        model = load(folder)
        total = len(locate(model).heads)
        steps = list(
            curve(
                model, task, Order(order), counts_to(total, total, step), measure_on=measure_on,
                progress=named(f"epoch {epoch:g}", progress),
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
        measured_on=measured_on([*chosen_before, task], measure_on or task),
        by_epoch=tuple(epochs),
    )
    arguments = {"order": order, "step": step, "measured_on": (measure_on or task).fingerprint}
    return Record("dynamics", Signature(name, "", task.fingerprint, arguments=arguments), parts)


def _epoch(epoch: float, steps: Sequence[Step], kinds: Sequence[str]) -> Epoch:
    quality = steps[0].quality
    points = []
    for step in steps:
        point = step.to_result(kinds, quality)
        kept_share = _kept(point.value, quality.value, quality.metric.higher_is_better)
        points.append(
            EpochStep(
                point.removed, point.share, point.value, point.low, point.high, point.kept_by_kind, kept_share,
                point.kept,
            )
        )  # fmt: skip
    return Epoch(epoch, quality.value, tuple(points))


def _kept(value: float, base: float, higher_is_better: bool) -> float:
    """Share of the unpruned score that remains; for a loss or perplexity, unpruned / pruned."""
    over, under = (value, base) if higher_is_better else (base, value)
    return over / under if base > 0 and under else float("nan")
