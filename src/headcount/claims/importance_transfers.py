"""M3: the same heads matter on other data (Michel et al. 2019, section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, above, missing, pooled
from headcount.claims.most_heads_can_go import ablations
from headcount.claims.steps import SEEN
from headcount.claims.studied import StudiedModel
from headcount.statistics import Interval


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    results, seen = ablations(models)
    studied = [parts.other for parts in results if parts.other]
    studied = [other for other in studied if other.pearson.r == other.pearson.r]
    if not studied:
        return missing(SEEN if seen else "no record of ablation on two data sets: give --other-split")
    interval = pooled([Interval(other.pearson.r, other.pearson.low, other.pearson.high) for other in studied])
    detail = ", ".join(f"{other.spearman.r:.2f}" for other in studied)
    return Measurement(interval, above(interval, 0.0), len(studied), 1, f"Spearman's {detail}")


CLAIM = Claim(
    number="M3",
    sentence="Heads that matter on one data set matter on another.",
    where="section 3.4, Figure 2",
    statistic="Pearson's correlation of the change without each head on two data sets, bootstrap over heads; above 0",
    part="ablation",
    options="--other-split SPLIT",
    changed_by="one or two heads that carry the correlation: the bootstrap over heads shows it",
    measure=_measure,
    bounds=(-1.0, 1.0),
)
