"""Tests of significance: exact ones, permutations, and the correction for their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headcount.statistics.interval import Interval, share_interval

# Of 270 heads worth nothing, with effects of an exponential tail, Holm's correction at .05 finds one in 22% of cases on
# 16 examples, in 12% on 32 and in 8% on 40; all of them seem to harm.
ENOUGH_FOR_A_TAIL = 40  # examples


def mcnemar(first_right: ArrayLike, second_right: ArrayLike) -> float:
    """Exact two-sided p-value of the hypothesis that two classifiers are right equally often on the same examples."""
    from scipy.stats import binomtest

    a, other = np.asarray(first_right, dtype=bool), np.asarray(second_right, dtype=bool)
    only_one, only_other = int((a & ~other).sum()), int((~a & other).sum())
    if only_one + only_other == 0:
        return 1.0
    return float(binomtest(only_one, only_one + only_other, 0.5).pvalue)


def paired_shares(first_right: ArrayLike, second_right: ArrayLike) -> Interval:
    """The share of right answers of the second less that of the first classifier, with a 95% interval.

    The exact intervals of the answers that only one of them has right, added as squares (Zou and Donner 2008): wide
    enough where few answers differ, and too narrow where most do.
    """
    a, other = np.asarray(first_right, dtype=bool), np.asarray(second_right, dtype=bool)
    lost, won = (share_interval(int(only.sum()), len(a)) for only in (a & ~other, ~a & other))
    value = won.value - lost.value
    low, high = (
        np.hypot(won.value - won.low, lost.high - lost.value),
        np.hypot(won.high - won.value, lost.value - lost.low),
    )
    return Interval(value, float(max(value - low, -1.0)), float(min(value + high, 1.0)))


def holm(p_values: ArrayLike) -> np.ndarray:
    """Holm's correction: p-values that can be compared with alpha, whatever the number of tests.

    NaN is no test: it stays NaN and does not count.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")[: np.count_nonzero(~np.isnan(p))]  # NaN comes last
    scaled = p[order] * np.arange(len(order), 0, -1)
    corrected = np.full_like(p, np.nan)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return corrected


def examples_for(tests: int, alpha: float = 0.01) -> int:
    """Number of examples needed to reject under Holm's correction of m tests.

    With N examples p is at least 2^(1 - N), by `mcnemar` and by `paired_bootstrap`, however large a difference is.
    """
    return int(np.floor(np.log2(tests / alpha))) + 2


def chance_of_overlap(layers: ArrayLike) -> np.ndarray:
    """Exact distribution of the number of marked heads that a random choice keeps, from 0.

    layers: [L, 3], heads of a layer, marked ones among them, and heads that are kept: every choice of as many heads in
    each layer is equally likely. Layers of several models may stand side by side.
    """
    from scipy.stats import hypergeom

    chance = np.ones(1)
    for heads, marked, drawn in np.asarray(layers, dtype=np.int64):
        chance = np.convolve(chance, hypergeom(heads, marked, drawn).pmf(np.arange(min(marked, drawn) + 1)))
    return chance
