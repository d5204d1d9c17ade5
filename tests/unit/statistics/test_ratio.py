"""Ratios of sums in constant memory, against loops over sentences and by simulation of what their intervals miss."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from headcount.statistics import RatioSums, Resampling, percentile_interval
from headcount.statistics.skewness import hall


def _sentences(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Weights and tokens of sentences of log-normal length; long ones have smaller weights."""
    length = np.ceil(20 * random.lognormal(size=shape))
    weight = np.clip(0.6 - 0.12 * np.log(length / 20) + 0.08 * random.normal(size=shape), 0.02, 1)
    return weight * length, length


def test_value_error_and_ends_by_a_loop_over_sentences() -> None:
    above_N, below_N = _sentences(np.random.default_rng(3), (40,))
    sums = RatioSums.of(above_N[:25], below_N[:25]) + RatioSums.of(above_N[25:], below_N[25:])
    ratio = above_N.sum() / below_N.sum()
    away = [a - ratio * b for a, b in zip(above_N, below_N, strict=True)]
    error = np.sqrt(40 / 39 * sum(x**2 for x in away)) / below_N.sum()
    assert sums.value == pytest.approx(ratio)
    assert sums.error(sums.count) == pytest.approx(error)
    assert sums.sentences == pytest.approx(below_N.sum() ** 2 / (below_N**2).sum())
    skewness = np.mean(np.array(away) ** 3) / np.mean(np.square(away)) ** 1.5 / np.sqrt(40) * np.sqrt(40 * 39) / 38
    low, high = sums.ends(sums.count)
    near, far = (ratio - low, high - ratio) if skewness > 0 else (high - ratio, ratio - low)
    quantile = stats.t.ppf(0.975, 39)
    assert near == pytest.approx(quantile * error)
    # the far end is where the corrected t-statistic is that of normal sentences; beyond .9 / quantile it would run away
    assert hall(-far / error, min(abs(skewness), 0.9 / quantile)) == pytest.approx(-quantile)


def test_nothing_and_one_sentence_have_no_interval() -> None:
    nothing = RatioSums.none((2,), (1,))
    assert np.isnan(nothing.value).all()
    one = nothing + RatioSums.of(np.array([[3.0, 1.0]]), np.array([[4.0]]))
    assert one.value.tolist() == [0.75, 0.25]
    assert np.isnan(one.ends(one.count)).all()


@pytest.mark.parametrize(("sentences", "most"), [(30, 0.12), (100, 0.09)])
def test_sentences_whose_length_matters_are_left_out_less_often(sentences: int, most: float) -> None:
    """Between the percentiles of resamples alone, 18 and 12% of intervals leave out the mean of all sentences."""
    random = np.random.default_rng(7)
    above_N, below_N = _sentences(random, (1_000_000,))
    truth = above_N.sum() / below_N.sum()
    counts_RN = Resampling(400).counts(range(sentences))
    above_NH, below_NH = _sentences(random, (sentences, 400))
    ends = percentile_interval((counts_RN @ above_NH) / (counts_RN @ below_NH), units=sentences)

    def missed(low: np.ndarray, high: np.ndarray) -> float:
        return float(np.mean((truth < low) | (truth > high)))

    assert missed(*RatioSums.of(above_NH, below_NH).widen(*ends)) < most
    assert missed(*ends) > most, "the case can fail"


def test_sentences_that_are_alike_lose_little() -> None:
    random = np.random.default_rng(8)
    below_NH = np.full((60, 300), 12.0)
    above_NH = below_NH * (0.5 + 0.1 * random.normal(size=below_NH.shape))
    counts_RN = Resampling(400).counts(range(60))
    ends = percentile_interval((counts_RN @ above_NH) / (counts_RN @ below_NH), units=60)
    wide = RatioSums.of(above_NH, below_NH).widen(*ends)
    assert np.mean(wide[1] - wide[0]) < 1.04 * np.mean(ends[1] - ends[0])


def test_a_ratio_of_nothing_is_not_a_number_and_says_no_more() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high = RatioSums.of(np.ones((3, 2)), np.array([[0.0, 1.0]] * 3)).widen(np.zeros(2), np.ones(2))
    assert (low[1], high[1]) == (0, 1)
