"""Intervals of one number: the mean, the median, any function of sums over examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headcount.statistics.bootstrap import bootstrap_sums


class Interval(NamedTuple):
    """An estimate with its confidence interval."""

    value: float
    low: float
    high: float


def median_interval(values: ArrayLike, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Interval:
    """The median of independent values, with its percentile bootstrap interval."""
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample):
        raise ValueError(f"The median needs a list of at least one number; got shape {sample.shape}.")
    random = np.random.default_rng(seed)
    medians = np.median(random.choice(sample, size=(resamples, len(sample))), axis=1)
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(medians, [tail, 100 - tail])
    return Interval(float(np.median(sample)), float(low), float(high))


def mean_interval(values: ArrayLike) -> Interval:
    """The mean of independent values with its 95% t-interval; a single value has no interval."""
    from scipy.stats import t

    sample = np.asarray(values, dtype=np.float64)
    mean = float(sample.mean())
    if len(sample) < 2:
        return Interval(mean, float("nan"), float("nan"))
    half = float(t.ppf(0.975, len(sample) - 1) * sample.std(ddof=1) / len(sample) ** 0.5)
    return Interval(mean, mean - half, mean + half)


def mean_difference(x: ArrayLike, y: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> Interval:
    """Mean of `first` minus mean of `second`, two independent groups resampled separately; NaN if one is empty."""
    groups = [np.asarray(values, dtype=np.float64) for values in (x, y)]
    if min(map(len, groups)) == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    random = np.random.default_rng(seed)
    means = [random.choice(group, size=(resamples, len(group))).mean(1) for group in groups]
    low, high = np.percentile(means[0] - means[1], [2.5, 97.5])
    return Interval(float(groups[0].mean() - groups[1].mean()), float(low), float(high))


def bootstrap_interval(
    statistics: ArrayLike, of_sums: Callable[[np.ndarray], np.ndarray], *, resamples: int = 1000, seed: int = 0
) -> Interval:
    """A function of summed statistics [N, ...], with its 95% percentile interval over examples; one has none."""
    table = np.asarray(statistics, dtype=np.float64)
    if len(table) < 2:
        return Interval(float(of_sums(table.sum(0))), float("nan"), float("nan"))
    drawn = np.concatenate([of_sums(sums) for sums in bootstrap_sums(table, resamples=resamples, seed=seed)])
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(float(of_sums(table.sum(0))), float(low), float(high))
