"""Correlations of pairs that are not independent, and of what a third variable leaves."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.statistics import pearson, residual


def test_pairs_of_a_group_count_as_few() -> None:
    """Eight pairs of four groups whose two pairs are almost equal are worth little more than four."""
    first = np.repeat([0.1, 0.4, 0.5, 0.9], 2) + 0.01 * np.arange(8)
    second = first + 0.05 * np.cos(np.arange(8))
    alone, together = pearson(first, second), pearson(first, second, groups=[*"aabbccdd"])
    assert alone.p < 0.003 < together.p
    assert together.low < 0.8 < alone.low
    assert alone.r == together.r


def test_a_residual_is_what_a_regression_leaves() -> None:
    given, noise = np.arange(6.0), np.array([1.0, -1, 0, 0, -1, 1])
    assert residual(3 + 2 * given + noise, given) == pytest.approx(noise)
    assert residual(noise, np.ones(6)) == pytest.approx(noise)
