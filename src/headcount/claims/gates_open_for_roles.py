"""V9: gates open wider for heads with a role of the paper (Voita et al. 2019, section 6.2, as one number)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.claims.claim import Claim, Measurement, above, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.heads import PAPER_ROLES, Head
from headcount.record.results.prune import Gates, Pruning
from headcount.record.results.roles import RolesFound
from headcount.statistics import Interval

_ROUNDS = 2000


def within_layers(values: np.ndarray, marked: np.ndarray, layers: np.ndarray) -> float:
    """Area under the curve of pairs of a marked and another head of the same layer; NaN where there are none."""
    won = pairs = 0.0
    for layer in np.unique(layers):
        inside = layers == layer
        gaps = values[inside & marked][:, None] - values[inside & ~marked][None]
        won, pairs = won + (gaps > 0).sum() + 0.5 * (gaps == 0).sum(), pairs + gaps.size
    return won / pairs if pairs else float("nan")


def area(values: np.ndarray, marked: np.ndarray, layers: np.ndarray) -> Interval:
    """With the width that it has when marks are dealt anew within each layer."""
    random, drawn = np.random.default_rng(0), np.empty(_ROUNDS)
    observed = within_layers(values, marked, layers)
    for index in range(_ROUNDS):
        dealt = marked.copy()
        for layer in np.unique(layers):
            dealt[layers == layer] = random.permutation(marked[layers == layer])
        drawn[index] = within_layers(values, dealt, layers)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(observed, observed - (high - 0.5), observed + (0.5 - low))


def _area(gates: Gates, roles: RolesFound) -> Interval | None:
    heads = [name for name in gates.values if name in roles.roles]
    marked = np.array([bool({item.role for item in roles.roles[name]} & set(PAPER_ROLES)) for name in heads], bool)
    layers = np.array([".".join(map(str, Head.parse(name).site)) for name in heads])
    values = np.array([gates.values[name] for name in heads], dtype=float)
    if not len(heads) or np.isnan(within_layers(values, marked, layers)):
        return None
    return area(values, marked, layers)


def _gates(model: StudiedModel) -> list[Gates]:
    pruned = [record.parts for record in model.records if isinstance(record.parts, Pruning)]
    return [parts.gates for parts in pruned if parts.gates]


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    areas = [
        measured_area
        for model in models
        if (roles := model.first(RolesFound))
        for gates in _gates(model)
        if (measured_area := _area(gates, roles)) is not None
    ]
    if not areas:
        return missing("it needs a record of roles and one of headcount prune --choose l0 of the same model")
    interval = pooled(areas)
    return Measurement(interval, above(interval, 0.5), len(models), len(areas))


CLAIM = Claim(
    number="V9",
    paper="voita2019",
    sentence="Gates open wider for heads with a role than for others of the same layer.",
    where="section 6.2.2",
    statistic="area under the curve of the gates' log a for having a role of the paper, within layers; above .5",
    command="headcount prune MODEL --keep 50% --choose l0 --task TASK --data DATA --out DIR",
    part="roles",
    changed_by="more models: with few heads in a layer chance is wide",
    measure=_measure,
)
