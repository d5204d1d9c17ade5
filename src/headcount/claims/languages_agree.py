"""Claim V6: heads track the same relations for all target languages (Voita et al. 2019, section 5.2, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import TypeAlias

from headcount.claims.claim import Claim, Measurement, above, averaged, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.claims.syntactic_heads_beat_offsets import paper_relations
from headcount.record.results.roles import Best, RolesFound
from headcount.statistics import Correlation, Interval, pearson, residual

Relations: TypeAlias = dict[str, Best]  # by relation and direction
_FEWEST = 5  # relations and directions: a correlation with a third variable held constant needs one more than others


def _relations(model: StudiedModel) -> Relations:
    roles = model.first(RolesFound)
    return {row.label: row for row in paper_relations(roles)} if roles else {}


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    by_language: dict[tuple[str, str], list[Relations]] = {}
    for model in models:
        if model.language and (rows := _relations(model)):
            by_language.setdefault((model.domain, model.language), []).append(rows)
    compared = [(left, right) for left, right in combinations(by_language, 2) if left[0] == right[0]]
    pairs = [(by_language[left], by_language[right]) for left, right in compared]
    if not pairs:
        return missing("it needs studies of models with other target languages, on the same source sentences")
    correlations = [correlation for left, right in pairs if (correlation := _correlation(left, right))]
    if not correlations:
        return missing(
            f"of fewer than {_FEWEST} relations and directions with enough instances two models both have a head that "
            "is better than the best offset"
        )
    interval = averaged(correlations)
    languages = ", ".join(sorted({language for _, language in by_language}))
    runs = min(min(len(left), len(right)) for left, right in pairs)
    studied = sum(len(by_language[group]) for group in set(chain.from_iterable(compared)))
    holds = above(interval, 0.0) if runs > 1 else None  # two models differ by their seeds too
    return Measurement(interval, holds, studied, runs, f"target: {languages}")


def _correlation(left: Sequence[Relations], right: Sequence[Relations]) -> Interval | None:
    """Correlate the models of two languages; of the intervals over the models of each, return the wider one.

    Each model counts once, with its mean over the models of the other language, because pairs that share a model are
    not independent. All are measured on the same relations, whose part does not average out over models.
    """
    sides = [[_mean_correlation(row, partners) for row in rows] for rows, partners in ((left, right), (right, left))]
    intervals = [pooled(defined, shared=True) for side in sides if (defined := [row for row in side if row])]
    return max(intervals, key=lambda interval: interval.high - interval.low, default=None)


def _mean_correlation(relations: Relations, partners: Sequence[Relations]) -> Interval | None:
    rows = [_partial(relations, other) for other in partners if len(_followed(relations, other)) >= _FEWEST]
    defined = [Interval(row.r, row.low, row.high) for row in rows if row.r == row.r]
    return averaged(defined) if defined else None


def _followed(relations: Relations, other: Relations) -> list[str]:
    """Relations and directions that the best heads of both models find more often than the best offset does.

    A head of fixed position is as good as the offset: where no other is better, accuracies are those of the offset in
    both models, and agree beyond what a straight line explains. Of unrelated heads that are at least as good, a fifth
    of the verdicts on one model of each language was "holds".
    """
    both = relations.keys() & other.keys()
    return sorted(
        label for label in both if all(side[label].value > side[label].baseline for side in (relations, other))
    )


def _partial(relations: Relations, other: Relations) -> Correlation:
    """Of the accuracies of two models, with that of the best offset held constant.

    Both models have the same offsets: the leads over them correlate wherever offsets vary, whatever the heads do. Both
    directions of a relation are about the same words, and are not independent.
    """
    labels = _followed(relations, other)
    offsets = [(relations[label].baseline + other[label].baseline) / 2 for label in labels]
    sides = [residual([side[label].value for label in labels], offsets) for side in (relations, other)]
    return pearson(*sides, groups=[label.split()[0] for label in labels])


CLAIM = Claim(
    number="V6",
    sentence="Models with different target languages follow the same relations.",
    where="Figure 4 as we read it; section 5.2.2 draws no strong conclusion on languages",
    statistic=(
        "Pearson's correlation of the best head's accuracy in two models over the relations where it is above that of "
        "the best offset in both, which is held constant; above 0"
    ),
    part="roles",
    data="grammar:bare",
    changed_by="a language in whose models another relation leads; the runs are the models of the language with fewer",
    measure=_measure,
    bounds=(-1.0, 1.0),
    compares_data=True,
)
