"""Claim V6: heads track the same relations for all target languages (Voita et al. 2019, section 5.2, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import TypeAlias

from headcount.claims.claim import Claim, Measurement, above, averaged, missing, pooled_correlation
from headcount.claims.studied import StudiedModel
from headcount.claims.syntactic_heads_beat_offsets import paper_relations
from headcount.record.results.roles import RolesFound
from headcount.statistics import Interval, pearson

Leads: TypeAlias = dict[str, float]  # relation -> accuracy of the best head minus that of the best offset


def _leads(model: StudiedModel) -> Leads:
    roles = model.first(RolesFound)
    return {row.label: row.value - row.baseline for row in paper_relations(roles)} if roles else {}


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    by_language: dict[tuple[str, str], list[Leads]] = {}
    for model in models:
        if model.language and (rows := _leads(model)):
            by_language.setdefault((model.domain, model.language), []).append(rows)
    compared = [(left, right) for left, right in combinations(by_language, 2) if left[0] == right[0]]
    pairs = [(by_language[left], by_language[right]) for left, right in compared]
    if not pairs:
        return missing("it needs studies of models with other target languages, on the same source sentences")
    correlations = [correlation for left, right in pairs if (correlation := _correlation(left, right))]
    if not correlations:
        return missing("the models share fewer than four relations with enough instances")
    interval = averaged(correlations)
    languages = ", ".join(sorted({language for _, language in by_language}))
    runs = min(min(len(left), len(right)) for left, right in pairs)
    studied = sum(len(by_language[group]) for group in set(chain.from_iterable(compared)))
    return Measurement(interval, above(interval, 0.0), studied, runs, f"target: {languages}")


def _correlation(left: Sequence[Leads], right: Sequence[Leads]) -> Interval | None:
    """Correlate the models of two languages; of the intervals over the models of each, return the wider one.

    Each model counts once, with its mean over the models of the other language, because pairs that share a model are
    not independent. All are measured on the same relations, whose part does not average out over models.
    """
    sides = [[_mean_correlation(row, others) for row in rows] for rows, others in ((left, right), (right, left))]
    intervals = [
        pooled_correlation(defined, shared=True) for side in sides if (defined := [row for row in side if row])
    ]
    return max(intervals, key=lambda interval: interval.high - interval.low, default=None)


def _mean_correlation(leads: Leads, others: Sequence[Leads]) -> Interval | None:
    shared = [(other, sorted(leads.keys() & other.keys())) for other in others]
    rows = [pearson([leads[label] for label in labels], [other[label] for label in labels]) for other, labels in shared]
    defined = [Interval(row.r, row.low, row.high) for row in rows if row.r == row.r]
    return averaged(defined) if defined else None


CLAIM = Claim(
    number="V6",
    sentence="Models with different target languages follow the same relations.",
    where="Figure 4 as we read it; section 5.2.2 draws no strong conclusion on languages",
    statistic="Pearson's correlation over relations of the best head's lead over the best offset, two models; above 0",
    command="headcount study voita2019 MODEL --data grammar:bare --out DIR",
    part="roles",
    changed_by="a language in whose models another relation leads; the runs are the models of the language with fewer",
    measure=_measure,
    compares_data=True,
)
