"""M8: early in training all heads matter alike: the score falls in a straight line (Michel et al. 2019, section 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.claims.claim import NORMAL, Claim, Measurement, above, deviation, missing, pooled
from headcount.claims.steps import NO_DYNAMICS, SEEN, studied
from headcount.claims.studied import StudiedModel
from headcount.record.results.dynamics import Dynamics, Epoch
from headcount.statistics import Interval

EARLY, LATE = 2, 10  # epochs: up to, and from
_LEARNED = 0.1  # of the last epoch's score


def bend(values: np.ndarray, shares: np.ndarray) -> float:
    """Mean distance of a curve from the line between its ends, as a share of its fall; above the line is positive."""
    fall = values[0] - values[-1]
    return float(np.mean(values - values[0]) / fall + shares.mean() / shares[-1])


def _bend(epoch: Epoch) -> tuple[float, float]:
    """The size of the bend of an epoch's curve, and its largest variance: points share examples, and noise adds up.

    With independent noise, a quarter of the verdicts on one model whose curves bend alike were wrong.
    """
    values = np.array([point.value for point in epoch.points])
    noise = np.array([deviation(Interval(point.value, point.low, point.high)) for point in epoch.points])
    shares = np.array([point.share for point in epoch.points])
    fall, mean_loss = values[0] - values[-1], np.mean(values - values[0])
    slope = np.full(len(values), 1 / (len(values) * fall))  # derivative of the bend with respect to every point
    slope[0] -= 1 / fall + mean_loss / fall**2
    slope[-1] += mean_loss / fall**2
    return abs(bend(values, shares)), float(np.abs(slope * noise).sum() ** 2)


def _has_learned(epoch: Epoch, dynamics: Dynamics) -> bool:
    """Whether the score gets clearly worse without heads, and is a fair share of that of the last epoch."""
    start, end = epoch.points[0], epoch.points[-1]
    if not dynamics.higher_is_better:
        return start.high < end.low
    return start.low > end.high and start.value >= _LEARNED * dynamics.by_epoch[-1].points[0].value


def _straighter(dynamics: Dynamics) -> Interval | None:
    early = [epoch for epoch in dynamics.by_epoch if epoch.epoch <= EARLY and _has_learned(epoch, dynamics)]
    late = [epoch for epoch in dynamics.by_epoch if epoch.epoch >= LATE and _has_learned(epoch, dynamics)]
    if not early or not late or len(early[0].points) < 4:
        return None
    (early_bend, first_variance), (last, last_variance) = _bend(early[0]), _bend(late[-1])
    half = NORMAL * (first_variance + last_variance) ** 0.5
    return Interval(last - early_bend, last - early_bend - half, last - early_bend + half)


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    runs, seen = studied(models, Dynamics)
    if not runs:
        return missing(SEEN if seen else NO_DYNAMICS)
    intervals = [gap for dynamics in runs if (gap := _straighter(dynamics)) is not None]
    if not intervals:
        last = max(epoch.epoch for dynamics in runs for epoch in dynamics.by_epoch)
        return missing(
            f"it needs an epoch up to {EARLY}, and one from {LATE} on, that lose something without heads; the last one "
            f"is {last:g}"
        )
    interval = pooled(intervals, shared=True)
    return Measurement(interval, above(interval, 0.0), len(intervals), 1)


CLAIM = Claim(
    number="M8",
    sentence="Early in training the score falls in a straight line as heads go, later it bends.",
    where="section 6, Figure 5",
    statistic=(
        "size of the mean distance of the pruning curve from a straight line, the last epoch less the earliest "
        "checkpoint with a tenth of its score; above 0"
    ),
    part="dynamics",
    changed_by="more models; a slower model, which has checkpoints between a tenth and half of its last score",
    measure=_measure,
)
