"""V9: gates open wider for heads with a role of the paper (Voita et al. 2019, section 6.2, as one number)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headcount.claims.claim import Claim, Measurement, above, averaged, missing, pooled
from headcount.claims.pruned import prunings, role_names
from headcount.claims.studied import StudiedModel
from headcount.heads import PAPER_ROLES, Head
from headcount.record.results.prune import Pruning as SinglePruning
from headcount.record.results.roles import RolesFound
from headcount.statistics import Interval

_ROUNDS = 2000


def within_layers(values: np.ndarray, marked: np.ndarray, layers: np.ndarray) -> float:
    """Area under the curve of pairs of a marked and another head of the same layer; NaN if there are none."""
    won = pairs = 0.0
    for layer in np.unique(layers):
        inside = layers == layer
        gaps = values[inside & marked][:, None] - values[inside & ~marked][None]
        won, pairs = won + (gaps > 0).sum() + 0.5 * (gaps == 0).sum(), pairs + gaps.size
    return float(won / pairs) if pairs else float("nan")


def area(values: np.ndarray, marked: np.ndarray, layers: np.ndarray) -> Interval:
    """The area, with an interval of the width that it has with marks permuted within each layer."""
    random, drawn = np.random.default_rng(0), np.empty(_ROUNDS)
    observed = within_layers(values, marked, layers)
    for index in range(_ROUNDS):
        dealt = marked.copy()
        for layer in np.unique(layers):
            dealt[layers == layer] = random.permutation(marked[layers == layer])
        drawn[index] = within_layers(values, dealt, layers)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(observed, observed - (high - 0.5), observed + (0.5 - low))


def _area(values_by_head: Mapping[str, float], roles: Mapping[str, frozenset[str]]) -> Interval | None:
    heads = [name for name in values_by_head if name in roles]
    marked = np.array([bool(roles[name] & set(PAPER_ROLES)) for name in heads], bool)
    layers = np.array([".".join(map(str, Head.parse(name).site)) for name in heads])
    values = np.array([values_by_head[name] for name in heads], dtype=float)
    if not len(heads) or np.isnan(within_layers(values, marked, layers)):
        return None
    return area(values, marked, layers)


def _areas(model: StudiedModel) -> list[Interval]:
    """The area of each set of gates of a model, from its trade-offs and single prunings."""
    of_tradeoffs = [
        (pruned.gate_values or {}, pruning.roles)
        for all_kinds in (False, True)
        for pruning in prunings(model, all_kinds=all_kinds)
        for pruned in pruning.models
    ]
    found_roles = model.first(RolesFound)
    roles = role_names(found_roles.roles) if found_roles else {}
    single = [(row.gates.values, roles) for row in model.every(SinglePruning) if row.gates]
    return [row for values, of_heads in (*of_tradeoffs, *single) if (row := _area(values, of_heads)) is not None]


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    by_model = [areas for model in models if (areas := _areas(model))]
    if not by_model:
        return missing("it needs roles of heads, some of each layer with and some without, and gates on them")
    interval = pooled([averaged(areas) for areas in by_model])  # gates of a model share heads and roles
    return Measurement(interval, above(interval, 0.5), len(by_model), sum(map(len, by_model)), "runs: sets of gates")


CLAIM = Claim(
    number="V9",
    sentence="Gates open wider for heads with a role than for others of the same layer.",
    where="section 6.2.2",
    statistic="area under the curve of the gates' log a for having a role of the paper, within layers; above .5",
    command="headcount study tradeoff MODEL --keep encoder=12,8,3 --ways l0 --task TASK --data DATA --out DIR",
    part="tradeoff",
    changed_by="more models: with few heads in a layer chance is wide",
    measure=_measure,
    bounds=(0.0, 1.0),
)
