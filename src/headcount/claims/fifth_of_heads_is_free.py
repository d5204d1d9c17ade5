"""M4: 20 to 40% of the heads can be removed without a noticeable loss (Michel et al. 2019, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from headcount.claims.claim import NOTICEABLE, Claim, Measurement, above, missing, pooled
from headcount.claims.steps import SEEN, at, kept, ordered_by, studied
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves
from headcount.statistics import Interval


def _kept(curves: Curves, share: float) -> Interval | None:
    curve = ordered_by(curves, "gradient")
    step = at(curve.points, share) if curve else None
    return kept(step, curve.points[0], higher_is_better=curves.higher_is_better) if curve and step else None


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    fifth, two_fifths = (_kept_by_models(models, share) for share in (0.2, 0.4))
    if not fifth:
        seen = studied(models, Curves)[1]
        return missing(SEEN if seen else "no curve by gradient scores with a step near 20%")
    interval = pooled(fifth, shared=True)
    detail = f"with 40% gone {pooled(two_fifths).value:.0%}" if two_fifths else ""
    return Measurement(interval, above(interval, 1 - NOTICEABLE), len(fifth), 1, detail)


def _kept_by_models(models: Sequence[StudiedModel], share: float) -> list[Interval]:
    curves = [parts for parts in studied(models, Curves)[0] if parts.value > 0]
    return [left for parts in curves if (left := _kept(parts, share)) is not None]


CLAIM = Claim(
    number="M4",
    sentence="A fifth of all heads can go at once without a noticeable loss.",
    where="section 4.2, Figure 3",
    statistic=(
        "share of the score that is left with 20% of the heads gone, lowest gradient score first (of a loss: that with "
        "all heads / that without them); above .95"
    ),
    part="curves",
    changed_by="more examples: the interval is over examples; where a loss becomes noticeable (here at 5%)",
    measure=_measure,
    bounds=(0.0, inf),
)
