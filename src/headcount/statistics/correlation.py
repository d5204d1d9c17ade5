"""Correlations with their intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Correlation(NamedTuple):
    """A correlation with its 95% interval and two-sided p."""

    r: float
    low: float
    high: float
    p: float


def pearson(first: ArrayLike, second: ArrayLike) -> Correlation:
    """Linear correlation, interval by Fisher's transformation; NaN where one side is constant."""
    from scipy.stats import pearsonr

    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(one) < 4 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return Correlation(float("nan"), float("nan"), float("nan"), float("nan"))
    found = pearsonr(one, other)
    interval = found.confidence_interval(0.95)
    return Correlation(float(found.statistic), float(interval.low), float(interval.high), float(found.pvalue))


def spearman(first: ArrayLike, second: ArrayLike) -> Correlation:
    """Correlation of ranks, interval by Fisher's transformation of them."""
    from scipy.stats import rankdata

    return pearson(rankdata(first), rankdata(second))
