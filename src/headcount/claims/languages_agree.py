"""V6: the same relations are followed whatever the target language (Voita et al. 2019, section 5.2, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from headcount.claims.claim import Claim, Measurement, above, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.claims.syntactic_heads_beat_offsets import paper_relations
from headcount.record.results.roles import RolesFound
from headcount.statistics import Interval, pearson


def _accuracies(model: StudiedModel) -> dict[str, float]:
    roles = model.first(RolesFound)
    return {row.label: row.value - row.baseline for row in paper_relations(roles)} if roles else {}


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    by_model = [(model, rows) for model in models if model.language and (rows := _accuracies(model))]
    pairs = [
        (left, right)
        for (left_name, left), (other, right) in combinations(by_model, 2)
        if left_name.language != other.language and left_name.domain == other.domain
    ]
    if not pairs:
        return missing("it needs studies of models with other target languages, on the same source sentences")
    correlations = []
    for left, right in pairs:
        shared = sorted(left.keys() & right.keys())
        correlations.append(pearson([left[label] for label in shared], [right[label] for label in shared]))
    defined = [Interval(row.r, row.low, row.high) for row in correlations if row.r == row.r]
    if not defined:
        return missing("the models share fewer than four relations with enough instances")
    interval = pooled(defined)
    languages = sorted({model.language for model, _ in by_model})
    return Measurement(interval, above(interval, 0.0), len(by_model), len(defined), f"target: {', '.join(languages)}")


CLAIM = Claim(
    number="V6",
    paper="voita2019",
    sentence="Models with different target languages follow the same relations.",
    where="section 5.2.2, Figure 4",
    statistic="Pearson's correlation over relations of the best head's lead over the best offset, two models; above 0",
    command="headcount study voita2019 MODEL --data grammar:bare --out DIR",
    part="roles",
    changed_by="a language in whose model another relation leads; pairs of models are the runs",
    measure=_measure,
)
