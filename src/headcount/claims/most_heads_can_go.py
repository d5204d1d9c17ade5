"""M1: most heads can be removed one at a time (Michel et al. 2019, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, above, missing, pooled, share_interval
from headcount.claims.studied import StudiedModel
from headcount.record.results.ablate import Ablation
from headcount.statistics import Interval


def _needed(parts: Ablation) -> int:
    """Heads without which the model is worse, at the level of the paper and without correction."""
    return sum(effect.p < parts.alpha and parts.harm(effect) > 0 for effect in parts.one_out.values())


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = [parts for model in models if (parts := model.first(Ablation)) and not parts.distance]
    if not studied:
        return missing("no record of ablation by a metric that is no distance")
    counts = [(len(parts.one_out) - _needed(parts), len(parts.one_out)) for parts in studied]
    interval = pooled([share_interval(*count) for count in counts])
    bounded = Interval(interval.value, max(interval.low, 0.0), min(interval.high, 1.0))
    free, total = map(sum, zip(*counts, strict=True))
    detail = f"{free} of {total} heads, p of {studied[0].alpha:g}"
    return Measurement(bounded, above(bounded, 0.5), len(studied), 1, detail)


CLAIM = Claim(
    number="M1",
    paper="michel2019",
    sentence="Most heads can be removed, one at a time, without making the model significantly worse.",
    where="section 3.2, Table 1",
    statistic="share of the heads whose removal makes the metric worse at no p below alpha, uncorrected; above .5",
    command="headcount ablate MODEL --task TASK --data DATA --out DIR",
    part="ablation",
    changed_by="more examples find smaller losses significant; more heads narrow the exact interval",
    measure=_measure,
)
