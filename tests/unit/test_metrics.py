"""Metrics compare two models by the test that fits them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from headcount.metrics import ACCURACY, LOSS
from headcount.statistics import paired_bootstrap


def _statistics(values: np.ndarray) -> np.ndarray:
    return np.stack([values, np.ones_like(values)], axis=-1)


def test_accuracy_is_compared_by_the_answers_that_change() -> None:
    """Two of 100 answers are lost: resamples alone would say that none is, at worst, in one of eight cases."""
    before, after = np.ones(100), np.ones(100)
    after[:2] = 0
    (change,) = ACCURACY.compare(_statistics(before), _statistics(after)[None], resamples=1000)
    assert change.difference == pytest.approx(-0.02)
    assert change.p == pytest.approx(binomtest(2, 2).pvalue)
    exact = binomtest(2, 100).proportion_ci(method="exact")
    assert change.low == pytest.approx(-exact.high)
    assert change.high <= -exact.low + 0.03


def test_a_loss_is_compared_by_the_bootstrap() -> None:
    before, after = np.random.default_rng(0).normal(size=(2, 50))
    statistics = _statistics(before), _statistics(after)[None]
    assert LOSS.compare(*statistics, resamples=200) == paired_bootstrap(*statistics, LOSS.of_sums, resamples=200)
