"""V9: gates open wider for heads with a role of the paper (Voita et al. 2019, section 6.2, as one number)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headcount.claims.claim import Claim, Measurement, above, averaged, missing, pooled
from headcount.claims.pruned import has_trees, prunings, role_names, unless_refuted
from headcount.claims.studied import StudiedModel
from headcount.heads import PAPER_ROLES, Head
from headcount.record.results.prune import Pruning as SinglePruning
from headcount.record.results.roles import RolesFound
from headcount.statistics import Interval, RatioSums, half_width

_ROUNDS = 2000


def _won(values: np.ndarray, marked: np.ndarray, layers: np.ndarray) -> np.ndarray:
    """[layers, 2]: pairs of a marked and another head of the same layer that the marked one wins, and all of them."""
    rows = []
    for layer in np.unique(layers):
        inside = layers == layer
        gaps = values[inside & marked][:, None] - values[inside & ~marked][None]
        rows.append([(gaps > 0).sum() + 0.5 * (gaps == 0).sum(), gaps.size])
    return np.array(rows, dtype=float)


def within_layers(values: np.ndarray, marked: np.ndarray, layers: np.ndarray) -> float:
    """Area under the curve of pairs of a marked and another head of the same layer; NaN if there are none."""
    won, pairs = _won(values, marked, layers).sum(0)
    return float(won / pairs) if pairs else float("nan")


def area(values: np.ndarray, marked: np.ndarray, layers: np.ndarray, *, single: bool = False) -> Interval:
    """The area, with an interval of the width that it has with marks permuted within each layer.

    single: whether it alone decides. Permutations take all gates as equally spread: with two of 8 or 12 marked, which
    vary three times as much as the others, 12 to 14% of verdicts on one model were wrong. It is then no narrower than a
    t-interval over three layers or more. Several models differ by as much.
    """
    random, drawn = np.random.default_rng(0), np.empty(_ROUNDS)
    observed = within_layers(values, marked, layers)
    for index in range(_ROUNDS):
        dealt = marked.copy()
        for layer in np.unique(layers):
            dealt[layers == layer] = random.permutation(marked[layers == layer])
        drawn[index] = within_layers(values, dealt, layers)
    low, high = np.percentile(drawn, [2.5, 97.5])
    won_L2 = _won(values, marked, layers)
    of_layers = RatioSums.of(*won_L2[won_L2[:, 1] > 0].T)
    wide = single and of_layers.count > 2
    half = float(half_width(of_layers.error(of_layers.count), of_layers.count)) if wide else 0.0
    return Interval(observed, observed - max(high - 0.5, half), observed + max(0.5 - low, half))


def _area(values_by_head: Mapping[str, float], roles: Mapping[str, frozenset[str]], single: bool) -> Interval | None:
    heads = [name for name in values_by_head if name in roles]
    marked = np.array([bool(roles[name] & set(PAPER_ROLES)) for name in heads], bool)
    layers = np.array([".".join(map(str, Head.parse(name).site)) for name in heads])
    values = np.array([values_by_head[name] for name in heads], dtype=float)
    if not len(heads) or np.isnan(within_layers(values, marked, layers)):
        return None
    return area(values, marked, layers, single=single)


def _areas(model: StudiedModel, *, single: bool = False) -> list[Interval]:
    """The area of each set of gates of a model, from its trade-offs and single prunings."""
    of_tradeoffs = [
        (pruned.gate_values or {}, pruning.roles)
        for all_kinds in (False, True)
        for pruning in prunings(model, all_kinds=all_kinds)
        for pruned in pruning.models
    ]
    found_roles = model.first(RolesFound)
    roles = role_names(found_roles.roles) if found_roles else {}
    of_prunings = [(row.gates.values, roles) for row in model.every(SinglePruning) if row.gates]
    gates = (*of_tradeoffs, *of_prunings)
    return [row for values, of_heads in gates if (row := _area(values, of_heads, single)) is not None]


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    by_model = [areas for model in models if (areas := _areas(model))]
    if len(by_model) == 1:
        by_model = [areas for model in models if (areas := _areas(model, single=True))]
    if not by_model:
        return missing("it needs roles of heads, some of each layer with and some without, and gates on them")
    interval = pooled([averaged(areas) for areas in by_model])  # gates of a model share heads and roles
    holds, note = unless_refuted(above(interval, 0.5), map(_trees, models))
    return Measurement(interval, holds, len(by_model), sum(map(len, by_model)), f"runs: sets of gates{note}")


def _trees(model: StudiedModel) -> bool:
    """Whether all roles of a model were measured on sentences with trees."""
    rows = [pruning for all_kinds in (False, True) for pruning in prunings(model, all_kinds=all_kinds)]
    found_roles = model.first(RolesFound)
    return all(row.trees for row in rows) and (found_roles is None or has_trees(found_roles))


CLAIM = Claim(
    number="V9",
    sentence="Gates open wider for heads with a role than for others of the same layer.",
    where="section 6.2.2",
    statistic="area under the curve of the gates' log a for having a role of the paper, within layers; above .5",
    part="tradeoff",
    changed_by="more models: with few heads in a layer chance is wide",
    measure=_measure,
    bounds=(0.0, 1.0),
)
