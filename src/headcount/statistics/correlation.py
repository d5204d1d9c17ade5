"""Correlations with bootstrap intervals over pairs: a wide interval shows that one or two pairs dominate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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


def pearson(x: ArrayLike, y: ArrayLike, *, seed: int = 0) -> Correlation:
    """Pearson correlation of two values per head; NaN if one of them is constant."""
    from scipy.stats import pearsonr

    return _correlation(x, y, lambda table: table, lambda a, other: float(pearsonr(a, other).pvalue), seed)


def spearman(x: ArrayLike, y: ArrayLike, *, seed: int = 0) -> Correlation:
    """Spearman correlation; ranks are computed again in every resample."""
    from scipy.stats import rankdata, spearmanr

    return _correlation(x, y, partial(rankdata, axis=-1), lambda a, other: float(spearmanr(a, other).pvalue), seed)


def _correlation(
    x: ArrayLike,
    y: ArrayLike,
    of: Callable[[np.ndarray], np.ndarray],
    p_value: Callable[[np.ndarray, np.ndarray], float],
    seed: int,
) -> Correlation:
    """of: function from values [..., pairs] to what is correlated."""
    a, other = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(a) < 4 or np.ptp(a) == 0 or np.ptp(other) == 0:
        return Correlation(float("nan"), float("nan"), float("nan"), float("nan"))
    resampled = np.random.default_rng(seed).integers(0, len(a), (_RESAMPLES, len(a)))
    drawn = _linear(of(a[resampled]), of(other[resampled]))
    low, high = np.percentile(drawn[~np.isnan(drawn)], [2.5, 97.5])
    return Correlation(float(_linear(of(a), of(other))), float(low), float(high), p_value(a, other))


def _linear(a: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Pearson correlation along the last axis; NaN if one side is constant."""
    a, other = a - a.mean(-1, keepdims=True), other - other.mean(-1, keepdims=True)
    size = np.sqrt(np.square(a).sum(-1) * np.square(other).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(size > 1e-300, (a * other).sum(-1) / size, np.nan)
