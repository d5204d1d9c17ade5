"""M9: from epoch 10 on, 85 to 90% of the score remains without 40% of the heads (Michel et al. 2019, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from headcount.claims.claim import Claim, Measurement, above, averaged, missing, pooled
from headcount.claims.early_epochs_fall_straight import LATE
from headcount.claims.steps import NO_DYNAMICS, SEEN, at, kept, studied
from headcount.claims.studied import StudiedModel
from headcount.record.results.dynamics import Dynamics, Epoch
from headcount.statistics import Interval

ENOUGH = 0.85


def _kept(epoch: Epoch, dynamics: Dynamics) -> Interval | None:
    step = at(epoch.points, 0.4)
    return kept(step, epoch.points[0], higher_is_better=dynamics.higher_is_better) if step else None


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    runs, seen = studied(models, Dynamics)
    if not runs:
        return missing(SEEN if seen else NO_DYNAMICS)
    late = [[epoch for epoch in dynamics.by_epoch if epoch.epoch >= LATE and epoch.value > 0] for dynamics in runs]
    if not any(late):
        last = max(epoch.epoch for dynamics in runs for epoch in dynamics.by_epoch)
        return missing(f"no epoch from {LATE} on; the last one is {last:g}")
    shares = [
        [share for epoch in epochs if (share := _kept(epoch, dynamics)) is not None]
        for dynamics, epochs in zip(runs, late, strict=True)
    ]
    by_model = [epochs for epochs in shares if epochs]
    if not by_model:
        return missing("no step of any epoch is near 40% of the heads: there are too few heads")
    interval = pooled([averaged(epochs) for epochs in by_model], shared=True)
    lowest = min(epoch.value for epochs in by_model for epoch in epochs)
    detail = f"in the worst epoch {lowest:.0%}; runs: epochs"
    return Measurement(interval, above(interval, ENOUGH), len(by_model), sum(map(len, by_model)), detail)


CLAIM = Claim(
    number="M9",
    sentence="From epoch 10 on, a model keeps at least 85% of its score with 40% of its heads gone.",
    where="section 6, Figure 5",
    statistic=(
        "share of its own score left with 40% of the heads gone (of a loss: that with all heads / that without them), "
        "mean of the epochs from 10 on; above .85"
    ),
    part="dynamics",
    changed_by="more examples and training runs",
    measure=_measure,
    bounds=(0.0, inf),
)
