"""Correlations with bootstrap intervals over pairs: a wide interval shows that one or two pairs dominate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_RESAMPLES = 2000
_BLOCK = 4_000_000  # values ranked at once: 32 MB


class Correlation(NamedTuple):
    """A correlation with its 95% interval, by bootstrap over the pairs, and two-sided p."""

    r: float
    low: float
    high: float
    p: float


_UNDEFINED = Correlation(float("nan"), float("nan"), float("nan"), float("nan"))


def pearson(x: ArrayLike, y: ArrayLike, *, seed: int = 0) -> Correlation:
    """Pearson correlation of two values per head; NaN if one of them is constant."""
    from scipy.stats import pearsonr

    a, other = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if _undefined(a) or _undefined(other):
        return _UNDEFINED
    resampled = np.random.default_rng(seed).integers(0, len(a), (_RESAMPLES, len(a)))
    drawn_R = _linear(a[resampled], other[resampled])
    return _summary(float(_linear(a, other)), drawn_R, float(pearsonr(a, other).pvalue))


def spearman(x: ArrayLike, y: ArrayLike, *, seed: int = 0) -> Correlation:
    """Spearman correlation; ranks are computed again in every resample."""
    return spearman_pairs([x, y], seed=seed)[0, 1]


def spearman_pairs(rows: Sequence[ArrayLike], *, seed: int = 0) -> dict[tuple[int, int], Correlation]:
    """Spearman correlation of every two rows, by their numbers. Each row is ranked once for all of its pairs.

    N rows, H heads, R resamples. A resample is how often it drew each head: sums over its draws are sums over heads,
    weighted by these counts.
    """
    from scipy.stats import rankdata, spearmanr

    table_NH = np.array(rows, dtype=np.float64)
    count, heads = table_NH.shape
    defined = [row for row in range(count) if not _undefined(table_NH[row])]
    pairs = list(combinations(range(count), 2))
    drawn_RNN = np.empty((_RESAMPLES, len(defined), len(defined)))
    step = max(1, _BLOCK // max(1, table_NH.size))
    for start in range(0, _RESAMPLES if len(defined) > 1 else 0, step):
        counts_RH = _draw_counts(heads, seed)[start : start + step].astype(np.float64)
        # the mean rank of a resample is that of H draws
        centred_RNH = np.stack([_ranks(table_NH[row], counts_RH) - (heads + 1) / 2 for row in defined], axis=1)
        sums_RNN = (centred_RNH * counts_RH[:, None]) @ centred_RNH.swapaxes(1, 2)
        squares_RN = np.einsum("rnn->rn", sums_RNN)
        drawn_RNN[start : start + step] = _divided(sums_RNN, np.sqrt(squares_RN[:, :, None] * squares_RN[:, None]))
    values = dict.fromkeys(pairs, _UNDEFINED)
    for (index, row), (other_index, other) in combinations(enumerate(defined), 2):
        a, b = table_NH[row], table_NH[other]
        r = float(_linear(rankdata(a), rankdata(b)))
        values[row, other] = _summary(r, drawn_RNN[:, index, other_index], float(spearmanr(a, b).pvalue))
    return values


@lru_cache(maxsize=2)  # rows of the same heads are correlated one after the other
def _draw_counts(heads: int, seed: int) -> np.ndarray:
    """[R, H]: how often each resample draws each head."""
    resampled_RH = np.random.default_rng(seed).integers(0, heads, (_RESAMPLES, heads))
    counts = [np.bincount(drawn_H, minlength=heads) for drawn_H in resampled_RH]
    return np.array(counts, dtype=np.uint16)


def _ranks(values_H: np.ndarray, counts_RH: np.ndarray) -> np.ndarray:
    """[R, H]: the rank of each value among the draws of each resample; equal values share their mean rank."""
    distinct, group_H = np.unique(values_H, return_inverse=True)
    order_H = np.argsort(group_H, kind="stable")
    starts_G = np.searchsorted(group_H[order_H], np.arange(len(distinct)))
    counts_RG = np.add.reduceat(counts_RH[:, order_H], starts_G, axis=1)
    ranks_RG = counts_RG.cumsum(1) - counts_RG + (counts_RG + 1) / 2
    return np.asarray(ranks_RG[:, group_H])


def _undefined(values: np.ndarray) -> bool:
    return len(values) < 4 or bool(np.ptp(values) == 0)


def _summary(r: float, drawn_R: np.ndarray, p: float) -> Correlation:
    low, high = np.percentile(drawn_R[~np.isnan(drawn_R)], [2.5, 97.5])
    return Correlation(r, float(low), float(high), p)


def _linear(a: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Pearson correlation along the last axis; NaN if one side is constant."""
    a, other = a - a.mean(-1, keepdims=True), other - other.mean(-1, keepdims=True)
    return _divided((a * other).sum(-1), np.sqrt(np.square(a).sum(-1) * np.square(other).sum(-1)))


def _divided(sums: np.ndarray, size: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(size > 1e-300, sums / size, np.nan)
