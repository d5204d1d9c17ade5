"""Bets on the mean: error rate on symmetric and skewed nulls at any time, power, and the definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from headcount.errors import UsageError
from headcount.statistics import Bets, anytime_interval

SHARES = [sign * size for size in (0.05, 0.1, 0.2, 0.4, 0.8) for sign in (1, -1)]


def skewed(random: np.random.Generator, size: tuple[int, ...], sign: int = 1) -> np.ndarray:
    """-1 with 90 %, +9 with 10 %: the mean is 0 and the distribution far from symmetric."""
    return sign * np.where(random.random(size) < 0.9, -1.0, 9.0)


def coin(random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """What accuracy gives: most answers do not change, as many improve as get worse."""
    return np.where(random.random(size) < 0.7, 0.0, np.where(random.random(size) < 0.5, 1.0, -1.0))


NULLS = {
    "skewed": (skewed, 9.0),
    "skewed the other way": (lambda random, size: skewed(random, size, -1), 9.0),
    "coin": (coin, 1.0),
}


@pytest.mark.parametrize("null", NULLS)
def test_the_error_rate_holds_whenever_one_looks(null: str) -> None:
    """4000 experiments in which the mean is 0, looked at after each of 30 batches."""
    draw, bound = NULLS[null]
    random, alpha, runs = np.random.default_rng(0), 0.05, 4000
    bets, lowest = Bets(runs, bound=bound), np.ones(runs)
    for _ in range(30):
        bets.add(range(runs), draw(random, (runs, 10)))
        lowest = np.minimum(lowest, bets.p())
    wrong = np.mean(lowest < alpha)
    assert wrong <= alpha
    assert wrong > 0.002, "the test can reject"


def test_a_real_effect_is_found_and_soon() -> None:
    random, bets = np.random.default_rng(1), Bets(2, bound=1.0)
    effect_VB = np.stack([random.choice([-1.0, 0.0, 1.0], 120, p=p) for p in ([0.4, 0.55, 0.05], [0.2, 0.6, 0.2])])
    bets.add([0, 1], effect_VB)
    assert bets.p()[0] < 1e-3
    assert bets.p()[1] > 0.05


def test_capital_is_the_mean_over_stakes_of_products() -> None:
    bets, values = Bets(3, bound=2.0), np.array([0.5, -0.2, 2.0, 0.0])
    bets.add([1], values[None, :3])
    bets.add([1], values[None, 3:])
    capital = np.mean([np.prod([1 + share * value / 2 for value in values]) for share in SHARES])
    assert bets.p() == pytest.approx([1.0, min(1, 1 / capital), 1.0])


def test_the_interval_has_the_means_that_the_bets_do_not_refute() -> None:
    random = np.random.default_rng(3)
    values = random.choice([-1.0, 0.0, 1.0], 40, p=[0.1, 0.5, 0.4])

    def capital(mean: float) -> float:
        ends = [(1 + mean) if share > 0 else (1 - mean) for share in SHARES]
        stakes = [share / end for share, end in zip(SHARES, ends, strict=True)]
        return float(np.mean([np.prod([1 + stake * (value - mean) for value in values]) for stake in stakes]))

    interval = anytime_interval(values, bound=1.0)
    inside = [mean for mean in np.linspace(-0.99, 0.99, 199) if capital(mean) < 20]
    assert interval.value == pytest.approx(values.mean())
    assert interval.low == pytest.approx(inside[0], abs=0.012)
    assert interval.high == pytest.approx(inside[-1], abs=0.012)


def test_the_interval_covers_at_the_worst_time_of_stopping() -> None:
    """Stop when the interval leaves out the true mean, if it ever does: it may in 5% of the experiments at most."""
    random, outside, runs = np.random.default_rng(4), 0, 200
    looks = (10, 20, 40, 80, 160)
    for _ in range(runs):
        values = skewed(random, (looks[-1],)) / 9
        intervals = [anytime_interval(values[:look], bound=1.0) for look in looks]
        outside += any(not interval.low <= 0.0 <= interval.high for interval in intervals)
    assert outside <= 0.05 * runs
    assert all(longer.high - longer.low <= shorter.high - shorter.low for shorter, longer in pairwise(intervals))


def test_values_beyond_the_bound_are_refused() -> None:
    with pytest.raises(UsageError, match="between -1 and 1; got one at distance 3"):
        Bets(1, bound=1.0).add([0], np.array([[0.5, -3.0]]))
