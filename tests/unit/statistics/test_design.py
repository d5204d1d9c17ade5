"""Design effects: heads of a layer are alike, and count for fewer independent ones."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from error_rates.populations import layered, roles_and_importance
from headcount.statistics import (
    difference_within,
    mean_difference,
    pearson,
    permutation_of_groups,
    share_in_groups,
    share_interval,
    spearman,
)
from headcount.statistics.design import design_effects


def _share_between(values: list[list[float]]) -> float:
    """Analysis of variance by hand: (MSB - MSW) / (MSB + (m - 1) MSW), with the m of groups of several sizes."""
    every, sizes = [value for group in values for value in group], [len(group) for group in values]
    mean, means = sum(every) / len(every), [sum(group) / len(group) for group in values]
    between = sum(size * (own - mean) ** 2 for size, own in zip(sizes, means, strict=True)) / (len(values) - 1)
    within = sum((value - own) ** 2 for group, own in zip(values, means, strict=True) for value in group)
    within /= len(every) - len(values)
    size = (len(every) - sum(size**2 for size in sizes) / len(every)) / (len(values) - 1)
    return max(0.0, (between - within) / (between + (size - 1) * within))


def test_the_design_effect_is_that_of_the_shares_between_groups() -> None:
    x, y = [[1.0, 2.0, 1.5], [4.0, 5.0], [7.0, 6.0, 8.5, 7.5]], [[0.0, 1.0, 3.0], [2.0, 4.0], [3.0, 5.0, 2.0, 4.5]]
    usual = (3 * 3 + 2 * 2 + 4 * 4) / 9  # heads share their layer with this many, themselves included
    effects = design_effects(np.array([[*chain(*x)], [*chain(*y)]]), [*"aaabbcccc"])
    assert effects[0, 1] == effects[1, 0] == pytest.approx(1 + (usual - 1) * _share_between(x) * _share_between(y))
    assert effects[0, 0] == pytest.approx(1 + (usual - 1) * _share_between(x) ** 2)


@pytest.mark.parametrize("groups", [(), "aaaaaaaa", "abcdefgh"])
def test_without_several_groups_of_several_pairs_all_are_independent(groups: str) -> None:
    rows = np.random.default_rng(0).normal(size=(2, 8))
    for correlation in (pearson, spearman):
        assert correlation(*rows, groups=[*groups]) == correlation(*rows)


def test_scores_that_do_not_depend_on_the_layer_are_as_certain_as_before() -> None:
    """Every layer has the same values: nothing lies between layers."""
    rows = np.tile(np.random.default_rng(0).normal(size=(2, 4)), 5)
    assert spearman(*rows, groups=[*np.repeat([*"abcde"], 4)]) == spearman(*rows)


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_unrelated_scores_that_depend_on_the_layer_do_not_correlate(correlation: Any) -> None:
    """As independent pairs, a third of the intervals leave out 0."""
    random, layers = np.random.default_rng(0), np.repeat(np.arange(6), 12)
    pairs = [layered(random, layers, 0.0, 0.6) for _ in range(50)]
    alone, together = ([correlation(*pair, groups=groups) for pair in pairs] for groups in ([], layers.tolist()))
    assert sum(not row.low <= 0 <= row.high for row in alone) > 10
    assert sum(not row.low <= 0 <= row.high for row in together) < 6
    assert all(row.p < 0.05 or row.low <= 0 <= row.high for row in [*alone, *together])
    assert all(one.low >= other.low and one.high <= other.high for one, other in zip(alone, together, strict=True))


def test_heads_of_two_layers_that_differ_say_little() -> None:
    """Both scores are a step between the layers: two values each, however many heads."""
    step, noise = np.repeat([0.0, 9.0], 8), np.random.default_rng(1).normal(size=(2, 16))
    found = pearson(*(step + noise), groups=[*np.repeat([*"ab"], 8)])
    assert found.r > 0.9
    assert found.low < 0
    assert found.p > 0.05


def test_a_difference_of_groups_is_wider_by_the_design_effect_of_values_and_groups() -> None:
    """Roles and importance are 40% the layer's: with heads as independent, 14% of intervals leave out 0."""
    random, layers = np.random.default_rng(3), np.repeat(np.arange(6), 12)
    misses = {"independent": 0, "layers": 0}
    for _ in range(200):
        marks, values = roles_and_importance(random, layers, 0.4)
        sides, order = (values[marks], values[~marks]), [*layers[marks], *layers[~marks]]
        alone, together = mean_difference(*sides, rounds=300), mean_difference(*sides, layers=order, rounds=300)
        scale = design_effects(np.array([marks, values], dtype=float), layers.tolist())[0, 1] ** 0.5
        assert together.value == alone.value
        assert together.high - together.low == pytest.approx(scale * (alone.high - alone.low))
        misses["independent"] += not alone.low <= 0 <= alone.high
        misses["layers"] += not together.low <= 0 <= together.high
    assert misses["independent"] > 18
    assert misses["layers"] < 17


def test_values_that_are_all_equal_have_no_design_effect() -> None:
    layers = [0, 0, 1, 1, 2, 2]
    assert mean_difference([1.0] * 2, [1.0] * 4, layers=layers) == mean_difference([1.0] * 2, [1.0] * 4)


def test_a_share_of_heads_is_as_certain_as_its_layers_allow() -> None:
    """A share of the variance between groups of 1 leaves groups; of 0, heads, but with the t of so many groups."""
    layers = [*np.repeat(np.arange(6), 8).tolist()]
    fewer = (1.959964 / t.ppf(0.975, 5)) ** 2
    by_layer = share_in_groups([layer < 3 for layer in layers], layers)
    assert by_layer == pytest.approx(share_interval(3 * fewer, 6 * fewer))
    even = share_in_groups([bool(place % 2) for place in range(48)], layers)
    worth = 48 / (1 + 7 / 25) * fewer  # 24 heads differ from the others
    assert even == pytest.approx(share_interval(worth / 2, worth))
    assert share_in_groups([True, False] * 4, [*range(8)]) == share_interval(4, 8), "a head of each layer"
    assert np.isnan(share_in_groups([True] * 8, [0, 1] * 4).low), "two layers"
    assert share_in_groups([True] * 48, layers) == share_interval(6, 6), "each layer counts as one head"
    assert share_in_groups([False] * 48, layers) == share_interval(0, 6)


def test_a_share_near_1_that_depends_on_the_layer_is_as_certain_as_one_of_a_half() -> None:
    """Shares of layers are .9 on average, with .4 times the variance of a head; of 500 lower ends, 11% were above."""
    random, layers = np.random.default_rng(0), np.repeat(np.arange(12), 12)
    shares = random.beta(0.9 * 1.5, 0.1 * 1.5, (200, 12))
    found = [share_in_groups((random.random(144) < row[layers]).tolist(), layers.tolist()) for row in shares]
    assert np.mean([row.low > 0.9 for row in found]) < 0.05
    assert np.mean([row.high < 0.9 for row in found]) < 0.05


def test_a_share_that_depends_on_the_layer_is_rarely_decided_at_its_threshold() -> None:
    random, layers = np.random.default_rng(5), np.repeat(np.arange(6), 12)
    found = [share_in_groups((layered(random, layers, 0.0, 0.4)[0] > 0).tolist(), layers.tolist()) for _ in range(300)]
    assert np.mean([not row.low <= 0.5 <= row.high for row in found]) < 0.08


def test_one_marked_head_of_each_layer_may_vary_more_than_the_others() -> None:
    """Twelve layers of twelve heads, marked ones three times as spread: a quarter to a third of the results erred."""
    random, layers = np.random.default_rng(0), np.repeat(np.arange(12), 12)
    marked = np.arange(144) % 12 == 0
    drawn = random.normal(size=(150, 144)) * np.where(marked, 3.0, 1.0)
    p_values = [permutation_of_groups(values, marked, layers, rounds=200) for values in drawn]
    assert np.mean([p < 0.05 for p in p_values]) < 0.1
    intervals = [difference_within(values, marked, layers, rounds=200) for values in drawn]
    assert np.mean([not row.low <= 0 <= row.high for row in intervals]) < 0.1


def test_others_with_a_long_tail_make_marked_heads_worth_more_less_often() -> None:
    """15% of the others have all of their worth, which is that of the marked ones: 11% of p-values were below .01."""
    random, layers, small = np.random.default_rng(0), np.repeat(np.arange(15), 4), 0
    for _ in range(300):
        marked = random.random(60) < 26 / 60
        others = np.where(random.random(60) < 0.15, random.exponential(size=60) / 0.15, 0)
        values = np.where(marked, random.normal(1, 0.3, size=60), others)
        small += permutation_of_groups(values, marked, layers, rounds=300) < 0.01
    assert small <= 22
