"""Correlations with their intervals: pairs are drawn anew, so that it shows where one or two of them carry it all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_RESAMPLES = 2000


class Correlation(NamedTuple):
    """A correlation with its 95% interval, by bootstrap over the pairs, and two-sided p."""

    r: float
    low: float
    high: float
    p: float


def pearson(first: ArrayLike, second: ArrayLike, *, seed: int = 0) -> Correlation:
    """Linear correlation of two numbers per head; NaN where one side is constant."""
    from scipy.stats import pearsonr

    return _correlation(first, second, lambda table: table, lambda one, other: float(pearsonr(one, other).pvalue), seed)


def spearman(first: ArrayLike, second: ArrayLike, *, seed: int = 0) -> Correlation:
    """Correlation of ranks, which are taken anew in every resample."""
    from scipy.stats import rankdata, spearmanr

    def ranks(table: np.ndarray) -> np.ndarray:
        ranked: np.ndarray = rankdata(table, axis=-1)
        return ranked

    return _correlation(first, second, ranks, lambda one, other: float(spearmanr(one, other).pvalue), seed)


def _correlation(
    first: ArrayLike,
    second: ArrayLike,
    of: Callable[[np.ndarray], np.ndarray],
    p_value: Callable[[np.ndarray, np.ndarray], float],
    seed: int,
) -> Correlation:
    """of: what is correlated, out of values [..., pairs]."""
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(one) < 4 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return Correlation(float("nan"), float("nan"), float("nan"), float("nan"))
    chosen = np.random.default_rng(seed).integers(0, len(one), (_RESAMPLES, len(one)))
    drawn = _linear(of(one[chosen]), of(other[chosen]))
    low, high = np.percentile(drawn[~np.isnan(drawn)], [2.5, 97.5])
    return Correlation(float(_linear(of(one), of(other))), float(low), float(high), p_value(one, other))


def _linear(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Along the last axis; NaN where one side is constant."""
    one, other = one - one.mean(-1, keepdims=True), other - other.mean(-1, keepdims=True)
    size = np.sqrt(np.square(one).sum(-1) * np.square(other).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(size > 1e-300, (one * other).sum(-1) / size, np.nan)
