"""Metrics compare two models by the test that fits them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from headcount.metrics import ACCURACY, F1, LOSS, MATTHEWS, Metric, confusion
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


def test_a_loss_is_compared_by_the_bootstrap_and_may_have_a_long_tail() -> None:
    before, after = np.random.default_rng(0).normal(size=(2, 50))
    statistics = _statistics(before), _statistics(after)[None]
    expected = paired_bootstrap(*statistics, LOSS.of_sums, resamples=200, skewed=True)
    assert LOSS.compare(*statistics, resamples=200) == expected


@pytest.mark.parametrize("metric", [F1, MATTHEWS])
def test_answers_that_do_not_change_may_change_elsewhere(metric: Metric) -> None:
    """Of models that lose one answer in 20, 21% lose none of 30, and had 0 (0 to 0)."""
    labels = np.arange(30) % 2
    right = confusion(labels, labels, 2)
    (same,) = metric.compare(right, right[None], resamples=200)
    lost = metric.of(np.array([[475, 25, 25, 475]])) - 1
    assert same.difference == 0
    assert same.low < lost < 0 < -lost < same.high
    fewer = confusion(labels ^ (np.arange(30) < 1), labels, 2)
    (one,) = metric.compare(right, fewer[None], resamples=200)
    assert one.low < same.low
    many = confusion(labels ^ (np.arange(30) < 8), labels, 2)
    (eight,) = metric.compare(right, many[None], resamples=200)
    assert eight == paired_bootstrap(right, many[None], metric.of_sums, resamples=200)[0]
