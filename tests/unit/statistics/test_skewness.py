"""Examples with a long tail: intervals reach far enough and p-values are not too small; others lose little."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from headcount.metrics import LOSS, PERPLEXITY
from headcount.statistics import Comparison, bootstrap_interval, paired_bootstrap
from headcount.statistics.skewness import hall, hall_inverse, skewness

_TAILS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {  # their mean is 0
    "exponential": lambda random, shape: random.exponential(size=shape) - 1,
    "log-normal": lambda random, shape: np.exp(random.normal(size=shape)) - np.exp(0.5),
    "one in ten": lambda random, shape: np.where(random.random(shape) < 0.1, 9.0, -1.0),
}


def _comparisons(effects_VN: np.ndarray, *, skewed: bool = LOSS.skewed) -> list[Comparison]:
    ones = np.ones(effects_VN.shape[1])
    reference = np.stack([np.zeros_like(ones), ones], axis=1)
    variants = np.stack([effects_VN, np.ones_like(effects_VN)], axis=-1)
    return paired_bootstrap(reference, variants, LOSS.of_sums, resamples=1000, skewed=skewed)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", _TAILS)
def test_a_long_tail_makes_nothing_significant(name: str, sign: int) -> None:
    """Without the correction, p is below .01 in 2.9, 6.0 and 3.8% of cases, and intervals leave out 0 in up to 10%."""
    effects = sign * _TAILS[name](np.random.default_rng(5), (2000, 50))
    rows = _comparisons(effects)
    assert np.mean([row.p < 0.01 for row in rows]) < 0.02
    assert np.mean([row.p < 0.05 for row in rows]) < 0.07
    assert np.mean([not row.low <= 0 <= row.high for row in rows]) < 0.07
    assert np.mean([row.p < 0.01 for row in _comparisons(effects, skewed=False)]) > 0.02  # so the case can fail


@pytest.mark.parametrize("sign", [1, -1])
def test_an_effect_on_the_side_of_the_tail_stays_significant(sign: int) -> None:
    """A head that a few texts need badly: the tail is the effect."""
    effects = sign * np.exp(np.random.default_rng(3).normal(size=(500, 50)))
    plain, corrected = (_comparisons(effects, skewed=skewed) for skewed in (False, True))
    near = "low" if sign > 0 else "high"
    for name in ("p", near):
        assert np.mean([getattr(a, name) == getattr(b, name) for a, b in zip(plain, corrected, strict=True)]) > 0.98


def test_symmetric_examples_lose_little() -> None:
    effects = np.random.default_rng(4).normal(0.4, 1.0, size=(1000, 50))
    plain, corrected = (_comparisons(effects, skewed=skewed) for skewed in (False, True))
    power = [np.mean([row.p < 0.05 for row in rows]) for rows in (plain, corrected)]
    assert power[0] - 0.04 < power[1] <= power[0]
    widths = [np.mean([row.high - row.low for row in rows]) for rows in (plain, corrected)]
    assert widths[0] <= widths[1] < 1.06 * widths[0]


def test_the_correction_only_widens() -> None:
    random = np.random.default_rng(8)
    for examples in (6, 10, 40):
        table = np.stack([random.exponential(size=examples), np.ones(examples)], axis=1)
        for metric in (LOSS, PERPLEXITY):
            plain, wide = (bootstrap_interval(table, metric.of_sums, skewed=skewed) for skewed in (False, True))
            assert wide.low <= plain.low <= plain.value <= plain.high <= wide.high


def test_hall_and_its_inverse() -> None:
    for size in (-0.4, -1e-9, 0.0, 0.2):
        distances = np.linspace(-2.2, 2.2, 9)
        np.testing.assert_allclose(hall_inverse(hall(distances, size), size), distances, atol=1e-6)
        assert (np.diff(hall(np.linspace(-9, 9, 50), size)) > 0).all()
    assert hall(-2.0, 0.3) == pytest.approx(-2.0 + 0.3 * 4 / 3 - 0.09 * 8 / 27 + 0.05)


def test_skewness_of_the_mean_is_that_of_examples_over_the_root_of_their_number() -> None:
    random = np.random.default_rng(9)
    examples = random.exponential(size=60)
    drawn = random.choice(examples, size=(200_000, 60)).mean(1)
    away = examples - examples.mean()
    unbiased = (away**3).mean() / (away**2).mean() ** 1.5 * np.sqrt(60 * 59) / 58
    assert skewness(drawn, 60) == pytest.approx(unbiased / np.sqrt(60), abs=0.02)
    assert skewness(np.full((9, 2), 3.0), 60).tolist() == [0.0, 0.0]
    with np.errstate(all="raise"):
        assert skewness(np.array([1.0, np.inf, 2.0]), 60) == 0.0
