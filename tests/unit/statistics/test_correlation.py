"""Correlations of pairs that are not independent, and of what a third variable leaves."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from headcount.statistics import pearson, residual


def test_pairs_of_a_group_are_permuted_together() -> None:
    """p of four groups against all 24 orders by hand; eight pairs alone would be far more certain."""
    first = np.repeat([0.1, 0.4, 0.5, 0.9], 2) + 0.01 * np.arange(8)
    second = first + 0.05 * np.cos(np.arange(8))
    groups = ["a", "a", "b", "b", "c", "c", "d", "d"]
    blocks = second.reshape(4, 2)
    by_hand = [abs(np.corrcoef(first, blocks[list(order)].ravel())[0, 1]) for order in permutations(range(4))]
    alone, together = pearson(first, second), pearson(first, second, groups=groups)
    assert together.p == pytest.approx(np.mean([r >= by_hand[0] - 1e-12 for r in by_hand]))
    assert alone.p < 0.01 < together.p
    assert alone.r == together.r


def test_a_residual_is_what_a_regression_leaves() -> None:
    given, noise = np.arange(6.0), np.array([1.0, -1, 0, 0, -1, 1])
    assert residual(3 + 2 * given + noise, given) == pytest.approx(noise)
    assert residual(noise, np.ones(6)) == pytest.approx(noise)
