"""M2: for most layers one head is enough (Michel et al. 2019, section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headcount.claims.claim import Claim, Measurement, above, missing, pooled, share_interval
from headcount.claims.studied import StudiedModel
from headcount.record.results.ablate import Ablation, BestAlone
from headcount.statistics import Interval


def _best_heads(parts: Ablation) -> Mapping[str, BestAlone]:
    """Best heads on examples that they were not chosen on; none where there are no such examples."""
    return (parts.all_but_one if parts.alone_held_out else parts.all_but_one_chosen_elsewhere) or {}


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = [parts for model in models if (parts := model.first(Ablation)) and not parts.distance]
    held_out = [(parts, best) for parts in studied if (best := _best_heads(parts))]
    if not held_out:
        reason = "the head was chosen on the examples it is measured on" if studied else ""
        return missing(reason or "no record of ablation by a metric that is no distance")
    counts = []
    for parts, best in held_out:
        enough = sum(not (row.p < parts.alpha and parts.harm(row) > 0) for row in best.values())
        counts.append((enough, len(best)))
    interval = pooled([share_interval(*count) for count in counts])
    bounded = Interval(interval.value, max(interval.low, 0.0), min(interval.high, 1.0))
    detail = f"{sum(enough for enough, _ in counts)} of {sum(total for _, total in counts)} layers of all kinds"
    return Measurement(bounded, above(bounded, 0.5), len(held_out), 1, detail)


CLAIM = Claim(
    number="M2",
    paper="michel2019",
    sentence="Most layers do as well with one of their heads.",
    where="section 3.3, Tables 2 and 3",
    statistic=(
        "share of the layers whose best head alone is not significantly worse, the head chosen on other examples than "
        "it is measured on; above .5"
    ),
    command="headcount study michel2019 MODEL --task TASK --data DATA --parts ablation --out DIR",
    part="ablation",
    changed_by="more layers: the interval is over layers; more examples find smaller losses significant",
    measure=_measure,
)
