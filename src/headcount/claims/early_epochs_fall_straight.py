"""M8: early in training all heads matter alike: the score falls in a straight line (Michel et al. 2019, section 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.claims.claim import Claim, Measurement, above, deviation, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.record.results.dynamics import Dynamics, Epoch
from headcount.statistics import Interval

_DRAWS = 2000
EARLY, LATE = 2, 10  # epochs: up to, and from
_LEARNED = 0.1  # of the last epoch's score


def bend(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """[..., points] -> [...]: mean distance of a curve from the line between its ends, as a share of its fall."""
    fall = values[..., :1] - values[..., -1:]
    straight = values[..., :1] - fall * shares / shares[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        result: np.ndarray = np.abs((values - straight) / fall).mean(-1)
    return result


def _drawn(epoch: Epoch, random: np.random.Generator) -> tuple[float, np.ndarray]:
    """The bend of an epoch's curve, and the bends with every point sampled from its interval."""
    values = np.array([point.value for point in epoch.points])
    noise = np.array([deviation(Interval(point.value, point.low, point.high)) for point in epoch.points])
    shares = np.array([point.share for point in epoch.points])
    drawn = bend(values + noise * random.standard_normal((_DRAWS, len(values))), shares)
    return float(bend(values, shares)), drawn


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
    random = np.random.default_rng(0)
    early_curve, last = _drawn(early[0], random), _drawn(late[-1], random)
    gaps = last[1] - early_curve[1]
    low, high = np.percentile(gaps[np.isfinite(gaps)], [2.5, 97.5])
    return Interval(last[0] - early_curve[0], float(low), float(high))


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = [dynamics for model in models if (dynamics := model.first(Dynamics))]
    if not studied:
        return missing("no record of dynamics: the model's folder has no checkpoints of its epochs")
    intervals = [gap for dynamics in studied if (gap := _straighter(dynamics)) is not None]
    if not intervals:
        last = max(epoch.epoch for dynamics in studied for epoch in dynamics.by_epoch)
        return missing(
            f"it needs an epoch up to {EARLY}, and one from {LATE} on, that lose something without heads; the last one "
            f"is {last:g}"
        )
    interval = pooled(intervals)
    return Measurement(interval, above(interval, 0.0), len(intervals), 1)


CLAIM = Claim(
    number="M8",
    sentence="Early in training the score falls in a straight line as heads go, later it bends.",
    where="section 6, Figure 5",
    statistic=(
        "mean distance of the pruning curve from a straight line, the last epoch less the earliest checkpoint with a "
        "tenth of its score; above 0"
    ),
    command="headcount study dynamics RUN --task TASK --data DATA --out DIR",
    part="dynamics",
    changed_by="more models; a slower model, which has checkpoints between a tenth and half of its last score",
    measure=_measure,
)
