"""Betting on the mean of bounded effects: an anytime-valid test and interval.

Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting. If the mean of independent
values in [-bound, bound] is m, then 1 + stake (x - m) is on average 1, whatever the shape of their distribution. The
product over values is a capital that starts at 1 and ever exceeds 1 / alpha with probability alpha at most (Ville's
inequality). The mean over a grid of stakes of both signs is such a capital too; 1 / capital is a p-value at any time.
Shapes: V variants, B values, S stakes, M candidate means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from headcount.errors import UsageError
from headcount.statistics.interval import Interval

# As shares of the largest stake with which the capital stays positive.
_SHARES = np.array([sign * size for size in (0.05, 0.1, 0.2, 0.4, 0.8) for sign in (1, -1)])
_CANDIDATES = 2001  # candidate means of an interval, between -bound and bound


class Bets:
    """The capital of bets against "the mean is 0", for several variants."""

    def __init__(self, count: int, *, bound: float) -> None:
        self._bound = bound
        self._logs_VS = np.zeros((count, len(_SHARES)))

    def add(self, variants: Sequence[int], effect_VB: np.ndarray) -> None:
        """Bet on the next values of these variants, by number."""
        _check(effect_VB, self._bound)
        stakes_S = _SHARES / self._bound
        self._logs_VS[list(variants)] += np.log1p(stakes_S * effect_VB[..., None]).sum(1)

    def p(self) -> np.ndarray:
        """[V]: p-values that are valid at any time."""
        return np.exp(-np.maximum(_log_mean(self._logs_VS), 0.0))


def anytime_interval(values: ArrayLike, *, bound: float, confidence: float = 0.95) -> Interval:
    """The mean of values in [-bound, bound], with an interval that is valid whenever sampling was stopped.

    It contains every candidate mean against which the bets have won less than 1 / (1 - confidence).
    """
    sample_B = np.asarray(values, dtype=np.float64)
    _check(sample_B, bound)
    distinct_D, times_D = np.unique(sample_B, return_counts=True)
    candidate_M = np.linspace(-bound, bound, _CANDIDATES)[1:-1]
    reach_MS = np.where(_SHARES > 0, bound + candidate_M[:, None], bound - candidate_M[:, None])  # to the far end
    stake_MS = _SHARES / reach_MS
    logs_MS = np.zeros_like(stake_MS)
    for value, times in zip(distinct_D, times_D, strict=True):
        logs_MS += times * np.log1p(stake_MS * (value - candidate_M[:, None]))
    inside = candidate_M[_log_mean(logs_MS) < -np.log(1 - confidence)]
    mean, step = float(sample_B.mean()), 2 * bound / (_CANDIDATES - 1)
    low, high = (float(inside[0]) - step, float(inside[-1]) + step) if len(inside) else (mean, mean)
    return Interval(mean, max(low, -bound), min(high, bound))


def _check(values: np.ndarray, bound: float) -> None:
    farthest = float(np.abs(values).max(initial=0.0))
    if farthest > bound:
        raise UsageError(f"Values must be between {-bound:g} and {bound:g}; got one at distance {farthest:g} from 0.")


def _log_mean(logs: np.ndarray) -> np.ndarray:
    """Logarithm of the mean of exp over the last axis."""
    peak = logs.max(-1)
    return peak + np.log(np.exp(logs - peak[..., None]).mean(-1))
