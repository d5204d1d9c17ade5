"""Skewness: intervals and p-values of a mean whose examples have a long tail on one side.

The t-statistic of n skewed examples is skewed the other way: a t-interval ends too early on the side of the tail. The
correction is Hall's transformation of the t-statistic (1992). It only widens intervals and increases p-values.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

_REACH = 0.9  # most skewness times quantile: at 1 the corrected ends of an interval run away


def hall(distance: ArrayLike, skewness: ArrayLike) -> np.ndarray:
    """The t-statistic of a mean with this skewness, made as symmetric as that of normal examples."""
    t, a = np.asarray(distance, dtype=np.float64), np.asarray(skewness, dtype=np.float64)
    return np.asarray(t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6)


def hall_inverse(distance: ArrayLike, skewness: ArrayLike) -> np.ndarray:
    """The t-statistic that `hall` maps to this one."""
    t, a = np.asarray(distance, dtype=np.float64), np.asarray(skewness, dtype=np.float64)
    divisor = np.where(np.abs(a) < 1e-6, 1.0, a)
    return np.asarray(np.where(np.abs(a) < 1e-6, t, 3 / divisor * (np.cbrt(1 + a * (t - a / 6)) - 1)))


def standard_error(drawn: np.ndarray, examples: int) -> np.ndarray:
    """Of a number on resamples [R, ...] of so many examples; the bootstrap has (n - 1) / n of its square."""
    with np.errstate(invalid="ignore"):
        return np.asarray(drawn.std(0) * sqrt(examples / max(examples - 1, 1)))


def skewness(drawn: np.ndarray, examples: int) -> np.ndarray:
    """Skewness of a number on resamples [R, ...], corrected for their few examples; 0 without variance."""
    with np.errstate(invalid="ignore"):  # infinite numbers have none
        away = drawn - drawn.mean(0)
        return _corrected((away**3).mean(0), (away**2).mean(0), examples)


def _corrected(cubes: np.ndarray, squares: np.ndarray, examples: ArrayLike) -> np.ndarray:
    """Skewness of a mean from its third and second moment without correction for few examples; 0 without variance."""
    n, most = np.maximum(examples, 3), _REACH / _quantile(examples)
    ratio = np.divide(cubes, squares**1.5, out=np.zeros_like(squares), where=squares > 0)
    return np.clip(ratio * np.sqrt(n * (n - 1)) / (n - 2), -most, most)


def mean_skewness(away_N: np.ndarray) -> np.ndarray:
    """Skewness of the mean of N values, from how far each is away from it; 0 without variance."""
    count = len(away_N)
    return _corrected((away_N**3).mean(0) / count**2, (away_N**2).mean(0) / count, count)


def mean_ends(
    mean: np.ndarray, error: np.ndarray, cubes: np.ndarray, examples: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of 95% t-intervals of means, the one on the side of a long tail moved outwards; NaN for one example.

    error: standard errors of the means. cubes: their third central moments, see `_corrected`. examples: one number of
    them for all means, or one for each.
    """
    examples = np.asarray(examples, dtype=np.float64)
    error = np.where(examples > 1, error, np.nan)
    a = _corrected(cubes, np.square(error) * (examples - 1) / np.maximum(examples, 1), examples)
    half, tail = (-hall_inverse(-_quantile(examples), size) * error for size in (np.zeros_like(a), np.abs(a)))
    tail = np.maximum(half, tail)
    return mean - np.where(a < 0, tail, half), mean + np.where(a > 0, tail, half)


def influences(table: np.ndarray, of_sums: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """[N, ...]: how far each example of statistics [N, ..., C] moves a function of their sums; their mean is 0.

    The skewness of a ratio is not that of its t-statistic: where long texts have another loss than short ones, they
    decide its numerator and divisor together, so that the ratio on resamples is symmetric, and too narrow.
    """
    without = of_sums(table.sum(0) - table)
    return np.asarray((len(table) - 1) * (without.mean(0) - without))


def widen(
    low: np.ndarray, high: np.ndarray, drawn: np.ndarray, examples: int, influence: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of a 95% interval, moved outwards where a number on resamples [R, ...] has a long tail.

    influence: of each example on the number, see `influences`; its tail counts too.
    """
    for a in _skewnesses(drawn, examples, influence):
        length = -hall_inverse(-_quantile(examples), np.abs(a)) * standard_error(drawn, examples)
        low = np.where(a < 0, np.minimum(low, drawn.mean(0) - length), low)
        high = np.where(a > 0, np.maximum(high, drawn.mean(0) + length), high)
    return low, high


def t_test(difference: np.ndarray, drawn: np.ndarray, examples: int, influence: np.ndarray | None = None) -> np.ndarray:
    """Two-sided p of a difference, whose values on resamples are `drawn` [R, ...]; 0 if they do not vary.

    Corrected for a long tail on the other side of 0, where few examples may have missed what is in it.
    """
    from scipy.stats import t

    error = standard_error(drawn, examples)
    distance = np.divide(difference, error, out=np.full_like(error, np.inf), where=error > 0)
    sign, size = np.sign(difference), np.abs(distance)
    finite = np.where(error > 0, size, 0.0)
    for a in _skewnesses(drawn, examples, influence):
        size = np.where(error > 0, np.clip(hall(finite, sign * a), 0.0, size), size)
    return np.asarray(2 * t.sf(size, max(examples - 1, 1)))


def _skewnesses(drawn: np.ndarray, examples: int, influence: np.ndarray | None) -> list[np.ndarray]:
    """Of a number on resamples, and of the mean influence of an example; 0 where that is not defined."""
    skewnesses = [skewness(drawn, examples)]
    if influence is not None:
        with np.errstate(invalid="ignore"):
            squares, cubes = (influence**2).mean(0) / examples, (influence**3).mean(0) / examples**2
            skewnesses.append(np.nan_to_num(_corrected(cubes, squares, examples)))
    return skewnesses


def _quantile(examples: ArrayLike) -> np.ndarray:
    from scipy.stats import t

    count = np.asarray(examples, dtype=np.float64)
    return np.asarray(t.ppf(0.975, np.where(count > 1, count - 1, 1.0)))
