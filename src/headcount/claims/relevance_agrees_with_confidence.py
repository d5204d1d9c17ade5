"""V2: heads that are relevant are confident too (Voita et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headcount.claims.claim import Claim, Measurement, above, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.heads import sites_of
from headcount.record.results.roles import RolesFound
from headcount.statistics import Correlation, Interval, spearman


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    correlations = [row for model in models if (row := _correlation(model)) is not None and row.r == row.r]
    if not correlations:
        return missing("no record of roles with relevance of four heads or more")
    interval = pooled([Interval(row.r, row.low, row.high) for row in correlations])
    return Measurement(interval, above(interval, 0.0), len(correlations), 1)


def _correlation(model: StudiedModel) -> Correlation | None:
    """Over the heads of the encoder, or only stack."""
    roles = model.first(RolesFound)
    if roles is None:
        return None
    scoring = model.scores("relevance")
    relevance: Mapping[str, float] = roles.relevance or (scoring.scores if scoring else {})
    heads = [name for name in roles.confidence if name in relevance and name.startswith(f"{roles.paper.kind}.")]
    confidence = [roles.confidence[name].value for name in heads]
    return spearman([relevance[name] for name in heads], confidence, groups=sites_of(heads))


CLAIM = Claim(
    number="V2",
    sentence="The relevance of a head agrees with its confidence.",
    where="section 4, Figure 1b",
    statistic="Spearman's correlation of relevance and confidence over the encoder's heads; above 0",
    part="roles",
    also=("relevance",),
    changed_by="more heads or models: with few heads the bootstrap over heads is wide",
    measure=_measure,
    bounds=(-1.0, 1.0),
)
