"""Correlations with bootstrap intervals over pairs: a wide interval shows that one or two pairs dominate.

With few pairs, or values of which a few are much larger than the rest, the bootstrap alone leaves out 0 for 8 to 15%
of independent pairs (normal values, 8 pairs; log-normal ones, 48 pairs). A permutation test is exact there: unless it
rejects independence too, the interval reaches 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_RESAMPLES = 2000
_LEVEL = 0.05


class Correlation(NamedTuple):
    """A correlation with its 95% interval over the pairs, and two-sided p of independence by permutation."""

    r: float
    low: float
    high: float
    p: float


def pearson(x: ArrayLike, y: ArrayLike, *, seed: int = 0) -> Correlation:
    """Pearson correlation of two values per head; NaN if one of them is constant."""
    return _correlation(x, y, lambda table: table, seed)


def spearman(x: ArrayLike, y: ArrayLike, *, seed: int = 0) -> Correlation:
    """Spearman correlation; ranks are computed again in every resample."""
    from scipy.stats import rankdata

    def ranks(table: np.ndarray) -> np.ndarray:
        ranked: np.ndarray = rankdata(table, axis=-1)
        return ranked

    return _correlation(x, y, ranks, seed)


def _correlation(x: ArrayLike, y: ArrayLike, of: Callable[[np.ndarray], np.ndarray], seed: int) -> Correlation:
    """of: function from values [..., pairs] to what is correlated."""
    a, other = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(a) < 4 or np.ptp(a) == 0 or np.ptp(other) == 0:
        return Correlation(float("nan"), float("nan"), float("nan"), float("nan"))
    random, r = np.random.default_rng(seed), float(_linear(of(a), of(other)))
    resampled = random.integers(0, len(a), (_RESAMPLES, len(a)))
    drawn = _linear(of(a[resampled]), of(other[resampled]))
    low, high = np.percentile(drawn[~np.isnan(drawn)], [2.5, 97.5])
    dealt = _linear(of(a), random.permuted(np.tile(of(other), (_RESAMPLES, 1)), axis=1))
    p = float((1 + (np.abs(dealt) >= abs(r) - 1e-12).sum()) / (_RESAMPLES + 1))
    if p >= _LEVEL:
        low, high = min(low, 0.0), max(high, 0.0)
    return Correlation(r, float(low), float(high), p)


def _linear(a: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Pearson correlation along the last axis; NaN if one side is constant."""
    a, other = a - a.mean(-1, keepdims=True), other - other.mean(-1, keepdims=True)
    size = np.sqrt(np.square(a).sum(-1) * np.square(other).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(size > 1e-300, (a * other).sum(-1) / size, np.nan)
