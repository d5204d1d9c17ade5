"""V5: some heads follow dependencies better than any fixed offset (Voita et al. 2019, section 5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headcount.claims.alone import by_role_alone
from headcount.claims.claim import Claim, Measurement, above, missing
from headcount.claims.studied import StudiedModel
from headcount.record.results.roles import Best, RolesFound
from headcount.statistics import Interval, mean_interval, t_interval


def paper_relations(roles: RolesFound) -> list[Best]:
    """The best head of the encoder for each relation and direction that has enough trials."""
    return [row for row in roles.syntax if row.kind == roles.paper.kind and row.holds is not None]


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = [best for model in models if (roles := model.first(RolesFound)) and (best := paper_relations(roles))]
    if not studied:
        return missing("no record of roles on sentences with trees, or too few instances of every relation")
    interval = _over_models_and_relations([{row.label: row.value - row.baseline for row in rows} for rows in studied])
    rows = [row for model_rows in studied for row in model_rows]
    detail = (
        f"{sum(bool(row.holds) for row in rows)} of {len(rows)} best heads are beyond the role's threshold; "
        f"{sum(row.held_out for row in rows)} of the heads were chosen on other sentences than they are measured on"
        f"{by_role_alone(models, 'syntactic')}"
    )
    return Measurement(interval, above(interval, 0.0), len(studied), 1, detail)


def _over_models_and_relations(leads: Sequence[Mapping[str, float]]) -> Interval:
    """The mean lead. All models are measured on the same relations, which vary too: their variance is added once.

    Both directions of a relation are about the same words and have the same best offset: they count as one.
    """
    rows = [_by_relation(model_leads) for model_leads in leads]
    if len(rows) == 1:
        return mean_interval(list(rows[0].values()))
    names = sorted({name for row in rows for name in row})
    over_models = [np.mean([row[name] for row in rows if name in row]) for name in names]
    variance = float(np.var(over_models, ddof=1)) / len(names) if len(names) > 1 else float("nan")
    return t_interval([float(np.mean(list(row.values()))) for row in rows], variance, fewest=max(len(names), 2))


def _by_relation(leads: Mapping[str, float]) -> dict[str, float]:
    """Relation -> mean lead of its directions."""
    names: dict[str, list[float]] = {}
    for label, lead in leads.items():
        names.setdefault(label.split()[0], []).append(lead)
    return {name: float(np.mean(of_relation)) for name, of_relation in names.items()}


CLAIM = Claim(
    number="V5",
    sentence="The best head of a dependency relation finds it more often than the best fixed offset does.",
    where="section 5.2.2, Table 1",
    statistic="accuracy of the best head less that of the best offset, mean over relations and directions; above 0",
    part="roles",
    changed_by="more relations, more models: the interval is over both",
    measure=_measure,
    bounds=(-1.0, 1.0),
)
