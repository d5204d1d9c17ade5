"""Correlations with bootstrap intervals over pairs: a wide interval shows that one or two pairs dominate.

With few pairs, or values of which a few are much larger than the rest, the bootstrap alone leaves out 0 for 8 to 15%
of independent pairs (normal values, 8 pairs; log-normal ones, 48 pairs). A permutation test is exact there: unless it
rejects independence too, the interval reaches 0. Resamples of few pairs vary too little as well: 21% of the lower ends
of four pairs were above a true .9. The interval is no narrower than that by Fisher's z. Ranks need that where all are
in the same order: six heads with a true .9 are in 13% of cases, and had 1 (1 to 1).
Where few heads have most of what both rows share, r varies more than resamples show, and its upper end is too low in 19
to 30% of cases (r of .97, 15% of 72 and 20 heads matter). Pearson's interval is widened by the influence of each pair,
on the scale of Fisher's z, and is no narrower than a t-interval there.
Heads of one layer are alike: of two unrelated values that both depend on the layer for 40%, 20 to 35% of intervals over
72 heads as independent pairs leave out 0. If groups are given, ends are farther away by the design effect on the scale
of Fisher's z, and no nearer than those of as many pairs as the heads are worth.

Shapes: N rows, H heads, R resamples or permutations.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headcount.statistics.bootstrap import percentile_interval
from headcount.statistics.design import design_effects
from headcount.statistics.interval import NORMAL, half_width
from headcount.statistics.skewness import influences, widen

_RESAMPLES = 2000
_LEVEL = 0.05
_PERFECT = 1 - 1e-5  # a correlation whose z is that of 1
_BLOCK = 4_000_000  # values ranked at once: 32 MB


class Correlation(NamedTuple):
    """A correlation with its 95% interval over the pairs, and two-sided p of independence.

    p is by permutation; with groups it is no less than by Fisher's z of as many pairs as the groups are worth. A small
    p says that the values of a pair depend on each other, not that r differs from 0: of heads that are worth nothing,
    but whose effects vary by different amounts, 20 to 70% have a p of Pearson's r below .05. The interval allows
    for it.
    """

    r: float
    low: float
    high: float
    p: float


_UNDEFINED = Correlation(float("nan"), float("nan"), float("nan"), float("nan"))


def pearson(x: ArrayLike, y: ArrayLike, *, groups: Sequence[Hashable] = (), seed: int = 0) -> Correlation:
    """Pearson correlation of two values per head; NaN if one of them is constant, or not a number for some head.

    groups: the group of each pair, such as the layer of a head, if pairs of a group are not independent.
    """
    table_NH = np.array([x, y], dtype=np.float64)
    if any(map(_undefined, table_NH)):
        return _UNDEFINED
    resampled_RH = np.random.default_rng(seed).integers(0, table_NH.shape[1], (_RESAMPLES, table_NH.shape[1]))
    drawn_R = _linear(table_NH[0][resampled_RH], table_NH[1][resampled_RH])
    r_NN, p_NN = _permuted(table_NH, seed)
    design = float(design_effects(table_NH, groups)[0, 1])
    r = float(np.clip(r_NN[0, 1], -1, 1))
    variance = _variance(table_NH.shape[1], design)
    correlation = _summary(r_NN[0, 1], _of_groups(p_NN[0, 1], r, variance, design), drawn_R, table_NH.shape[1])
    return _no_narrower(_stretched(_by_influence(correlation, table_NH, drawn_R), design), r, variance)


def residual(values: ArrayLike, regressors: ArrayLike) -> np.ndarray:
    """The part of values that a linear regression does not explain; their mean is 0."""
    centred, regressor = (np.array(row, dtype=np.float64) for row in (values, regressors))
    centred, regressor = centred - centred.mean(), regressor - regressor.mean()
    square = regressor @ regressor
    return np.asarray(centred - regressor * (centred @ regressor) / square) if square > 1e-300 else centred


def spearman(x: ArrayLike, y: ArrayLike, *, groups: Sequence[Hashable] = (), seed: int = 0) -> Correlation:
    """Spearman correlation; ranks are computed again in every resample. groups: as of `pearson`."""
    return spearman_pairs([x, y], groups=groups, seed=seed)[0, 1]


def spearman_pairs(
    rows: Sequence[ArrayLike], *, groups: Sequence[Hashable] = (), seed: int = 0
) -> dict[tuple[int, int], Correlation]:
    """Spearman correlation of every two rows, by their numbers. Each row is ranked once for all of its pairs.

    A resample is how often it drew each head: sums over its draws are sums over heads, weighted by these counts.
    """
    from scipy.stats import rankdata

    table_NH = np.array(rows, dtype=np.float64)
    values = dict.fromkeys(combinations(range(len(table_NH)), 2), _UNDEFINED)
    defined = [row for row, values_H in enumerate(table_NH) if not _undefined(values_H)]
    if len(defined) > 1:
        table_NH = table_NH[defined]
        ranks_NH = rankdata(table_NH, axis=-1)
        drawn_RNN, (r_NN, p_NN) = _resampled(table_NH, seed), _permuted(ranks_NH, seed)
        design_NN = design_effects(ranks_NH, groups)
        for a, b in combinations(range(len(defined)), 2):
            values[defined[a], defined[b]] = _of_ranks(
                r_NN[a, b], p_NN[a, b], drawn_RNN[:, a, b], table_NH.shape[1], float(design_NN[a, b])
            )
    return values


def _resampled(table_NH: np.ndarray, seed: int) -> np.ndarray:
    """[R, N, N]: Spearman correlations of all rows in each resample of the heads."""
    count, heads = table_NH.shape
    drawn_RNN = np.empty((_RESAMPLES, count, count))
    step = max(1, _BLOCK // table_NH.size)
    for start in range(0, _RESAMPLES, step):
        counts_RH = _draw_counts(heads, seed)[start : start + step].astype(np.float64)
        # the mean rank of a resample is that of H draws
        centred_RNH = np.stack([_ranks(values_H, counts_RH) - (heads + 1) / 2 for values_H in table_NH], axis=1)
        sums_RNN = (centred_RNH * counts_RH[:, None]) @ centred_RNH.swapaxes(1, 2)
        squares_RN = np.einsum("rnn->rn", sums_RNN)
        drawn_RNN[start : start + step] = _divided(sums_RNN, np.sqrt(squares_RN[:, :, None] * squares_RN[:, None]))
    return drawn_RNN


def _permuted(table_NH: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """[N, N] twice: the linear correlation of every two rows, and its two-sided p if the heads of one are permuted."""
    centred_NH = table_NH - table_NH.mean(-1, keepdims=True)
    unit_NH = centred_NH / np.sqrt(np.square(centred_NH).sum(-1, keepdims=True))
    r_NN, beyond_NN = unit_NH @ unit_NH.T, np.zeros((len(table_NH), len(table_NH)))
    step = max(1, _BLOCK // table_NH.shape[1])
    for start in range(0, _RESAMPLES, step):
        dealt_RH = _deals(table_NH.shape[1], seed)[start : start + step]
        for row, unit_H in enumerate(unit_NH):
            dealt_RN = unit_H[dealt_RH] @ unit_NH.T
            beyond_NN[row] += (np.abs(dealt_RN) >= np.abs(r_NN[row]) - 1e-12).sum(0)
    return r_NN, (1 + beyond_NN) / (_RESAMPLES + 1)


@lru_cache(maxsize=2)  # rows of the same heads are correlated one after the other
def _draw_counts(heads: int, seed: int) -> np.ndarray:
    """[R, H]: how often each resample draws each head."""
    resampled_RH = np.random.default_rng(seed).integers(0, heads, (_RESAMPLES, heads))
    counts = [np.bincount(drawn_H, minlength=heads) for drawn_H in resampled_RH]
    return np.array(counts, dtype=np.uint16)


@lru_cache(maxsize=2)
def _deals(heads: int, seed: int) -> np.ndarray:
    """[R, H]: permutations of the heads."""
    order_RH = np.tile(np.arange(heads, dtype=np.int32), (_RESAMPLES, 1))
    return np.random.default_rng([seed, 1]).permuted(order_RH, axis=1)


def _ranks(values_H: np.ndarray, counts_RH: np.ndarray) -> np.ndarray:
    """[R, H]: the rank of each value among the draws of each resample; equal values share their mean rank."""
    distinct, group_H = np.unique(values_H, return_inverse=True)
    order_H = np.argsort(group_H, kind="stable")
    starts_G = np.searchsorted(group_H[order_H], np.arange(len(distinct)))
    counts_RG = np.add.reduceat(counts_RH[:, order_H], starts_G, axis=1)
    ranks_RG = counts_RG.cumsum(1) - counts_RG + (counts_RG + 1) / 2
    return np.asarray(ranks_RG[:, group_H])


def _undefined(values: np.ndarray) -> bool:
    return len(values) < 4 or not np.isfinite(values).all() or bool(np.ptp(values) == 0)


def _summary(r: float, p: float, drawn_R: np.ndarray, heads: int) -> Correlation:
    low, high = map(float, percentile_interval(drawn_R, units=max(heads, 6)))
    if p >= _LEVEL:
        low, high = min(low, 0.0), max(high, 0.0)
    return Correlation(float(r), float(min(low, r)), float(max(high, r)), float(p))  # all may be 1 but for rounding


def _of_ranks(r: float, p: float, drawn_R: np.ndarray, heads: int, design: float) -> Correlation:
    """No narrower than by Fisher's z with the variance of ranks (Bonett and Wright 2000).

    Ranks in the same order have the interval of those with two neighbours exchanged. Where few heads of many have one
    of two values, resamples without any of them say nothing: 17% of intervals of 2 of 12 left out the truth.
    """
    next_best = 1 - 12 / (heads**3 - heads)
    imperfect = float(np.clip(r, -next_best, next_best))
    variance = (1 + imperfect**2 / 2) * _variance(heads, design)
    correlation = _summary(r, _of_groups(p, imperfect, variance, design), drawn_R, heads)
    return _no_narrower(_stretched(correlation, design), imperfect, variance)


def _variance(heads: int, design: float) -> float:
    """Of Fisher's z; a design effect leaves fewer heads."""
    return 1 / max(heads / design - 3, 1e-9)


def _of_groups(p: float, r: float, variance: float, design: float) -> float:
    """p, no less than by Fisher's z where heads of a group are alike: permutations take heads as independent."""
    from scipy.stats import norm

    with np.errstate(divide="ignore"):
        return max(p, float(2 * norm.sf(np.abs(np.arctanh(r)) / variance**0.5))) if design > 1 else p


def _stretched(correlation: Correlation, design: float) -> Correlation:
    """With ends farther away by the design effect, on the scale of Fisher's z."""
    z, low, high = (float(_fisher(end)) for end in correlation[:3])
    low, high = np.tanh([z - design**0.5 * (z - low), z + design**0.5 * (high - z)])
    return correlation._replace(low=min(correlation.low, float(low)), high=max(correlation.high, float(high)))


def _no_narrower(correlation: Correlation, r: float, variance: float) -> Correlation:
    """With ends at least as far away as those of r by Fisher's z, which has this variance."""
    with np.errstate(divide="ignore"):
        low, high = np.tanh(np.arctanh(r) + np.array([-1, 1]) * NORMAL * variance**0.5)
    return correlation._replace(low=min(correlation.low, float(low)), high=max(correlation.high, float(high)))


def _by_influence(correlation: Correlation, table_NH: np.ndarray, drawn_R: np.ndarray) -> Correlation:
    """With ends as far away as the influence of each pair on Fisher's z needs."""
    heads = table_NH.shape[1]
    x_H, y_H = ((row - row.mean()) / row.std() for row in table_NH)
    influence_H = influences(np.stack([np.ones(heads), x_H, y_H, x_H**2, y_H**2, x_H * y_H], axis=1), _z_of_sums)
    z_R, z = _fisher(drawn_R[np.isfinite(drawn_R)]), float(_fisher(correlation.r))
    tail_low, tail_high = widen(np.asarray(z), np.asarray(z), z_R, heads, influence_H)
    half = float(half_width(influence_H.std(ddof=1) / heads**0.5, heads))
    low, high = np.tanh(min(float(tail_low), z - half)), np.tanh(max(float(tail_high), z + half))
    return correlation._replace(low=min(correlation.low, float(low)), high=max(correlation.high, float(high)))


def _z_of_sums(sums: np.ndarray) -> np.ndarray:
    """Fisher's z of the correlation of x and y, from sums [..., 6] of 1, x, y, x^2, y^2 and x y."""
    _, x, y, xx, yy, xy = np.moveaxis(sums / sums[..., :1], -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _fisher((xy - x * y) / np.sqrt((xx - x**2) * (yy - y**2)))


def _fisher(r: ArrayLike) -> np.ndarray:
    """Fisher's z; that of a perfect correlation is finite."""
    return np.asarray(np.arctanh(np.clip(np.nan_to_num(np.asarray(r, dtype=np.float64)), -_PERFECT, _PERFECT)))


def _linear(a: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Pearson correlation along the last axis; NaN if one side is constant."""
    a, other = a - a.mean(-1, keepdims=True), other - other.mean(-1, keepdims=True)
    return _divided((a * other).sum(-1), np.sqrt(np.square(a).sum(-1) * np.square(other).sum(-1)))


def _divided(sums: np.ndarray, size: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(size > 1e-300, sums / size, np.nan)
