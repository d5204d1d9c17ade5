"""The bootstrap: intervals from examples resampled with replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import sqrt
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headcount.errors import UsageError, check_type
from headcount.statistics.skewness import influences, t_test, widen

_CHUNK = 1000  # resamples
_MOST_COUNTS = 4_000_000  # examples times resamples of a chunk, 8 bytes each; as many are cached
_FEWEST_RESAMPLES = 10
_FEWEST = 6  # examples of a 95% interval: the range of five leaves out their median in 6% of cases


class Comparison(NamedTuple):
    """A paired difference of two measurements on the same examples."""

    difference: float  # second minus first
    low: float  # 95% interval
    high: float
    p: float  # two-sided


def resamples_for(tests: int, alpha: float = 0.01) -> int:
    """Number of bootstrap resamples needed to reject under Holm's correction of m tests: max(1000, 10 m / alpha)."""
    return max(1000, int(np.ceil(10 * tests / alpha)))


def bootstrap_sums(statistics: ArrayLike, *, resamples: int, seed: int = 0) -> Iterator[np.ndarray]:
    """[chunk, ...]: sums of statistics [N, ...] over resampled examples, a matrix product for each chunk of resamples.

    The same seed draws the same examples, so that measurements of the same examples stay paired. Chunks are
    smaller for many examples, so that memory does not grow with their number.
    """
    table = np.asarray(statistics, dtype=np.float64)
    flat = table.reshape(len(table), -1)
    chunk = max(1, min(_CHUNK, _MOST_COUNTS // len(table)))
    drawn = _kept_counts if resamples * len(table) <= _MOST_COUNTS else _counts
    for counts in drawn(len(table), resamples, seed, chunk):
        yield (counts @ flat).reshape(len(counts), *table.shape[1:])


def _counts(examples: int, resamples: int, seed: int, chunk: int) -> Iterator[np.ndarray]:
    """[chunk, examples]: how often each example is in each resample."""
    random, chance = np.random.default_rng(seed), np.full(examples, 1 / examples)
    for start in range(0, resamples, chunk):
        yield random.multinomial(examples, chance, size=min(chunk, resamples - start)).astype(np.float64)


@lru_cache(maxsize=1)
def _kept_counts(examples: int, resamples: int, seed: int, chunk: int) -> tuple[np.ndarray, ...]:
    """The same, cached for the next measurement of the same examples: sampling them takes longer than using them."""
    return tuple(_counts(examples, resamples, seed, chunk))


def counted(statistics: ArrayLike) -> np.ndarray:
    """Statistics [N, ...] without examples whose statistics are all 0, such as texts without predictions.

    They say nothing, but a resample of them alone would be perfect, and a few examples would seem to be many.
    """
    table = np.asarray(statistics, dtype=np.float64)
    says = table.reshape(len(table), -1).any(1)
    return table[says] if says.any() else table


def paired_bootstrap(
    reference: ArrayLike,
    variants: ArrayLike,
    of_sums: Callable[[np.ndarray], np.ndarray],
    *,
    resamples: int,
    seed: int = 0,
) -> list[Comparison]:
    """Each of `variants` [V, N, C] against `reference` [N, C]: two-sided, p = (1 + #{|d* - d| >= |d|}) / (B + 1).

    With few examples resamples vary too little: p is at least that of a t-test with their standard deviation, and at
    least 2^(1 - N), as for N differences of which all have the same sign. Interval and t-test are corrected for a
    long tail of examples.
    """
    base, table = np.asarray(reference, dtype=np.float64), np.asarray(variants, dtype=np.float64)
    together = counted(np.concatenate([base[:, None], table.transpose(1, 0, 2)], axis=1))  # [N, 1 + V, C]
    examples = len(together)
    observed = of_sums(together.sum(0))
    difference_V = observed[1:] - observed[0]
    drawn_BV = np.concatenate(
        [
            (scores := of_sums(sums))[:, 1:] - scores[:, :1]
            for sums in bootstrap_sums(together, resamples=resamples, seed=seed)
        ]
    )
    nearer_V = (np.abs(drawn_BV - difference_V) < np.abs(difference_V) - 1e-12).sum(0)  # NaN is not nearer
    p_V = np.maximum((1 + len(drawn_BV) - nearer_V) / (len(drawn_BV) + 1), 2.0 ** (1 - examples))
    influence_NV = influences(together, lambda sums: (scores := of_sums(sums))[:, 1:] - scores[:, :1])
    p_V = np.fmax(p_V, t_test(difference_V, drawn_BV, examples, influence_NV))
    low_V, high_V = widen(*percentile_interval(drawn_BV, units=examples), drawn_BV, examples, influence_NV)
    return [Comparison(*map(float, row)) for row in zip(difference_V, low_V, high_V, p_V, strict=True)]


class Resampling:
    """Bootstrap of sums in constant memory: examples are added in batches and not stored.

    Each example enters each resample a Poisson(1) number of times, which for many examples is what drawing with
    replacement gives. The number depends only on the seed and the index of the example, not on the batches.
    """

    def __init__(self, resamples: int = 1000, *, seed: int = 0) -> None:
        check_type("resamples", resamples, Integral, "a whole number")
        if resamples < _FEWEST_RESAMPLES:
            raise UsageError(f"resamples must be at least {_FEWEST_RESAMPLES}; got {resamples}.")
        self.resamples = resamples
        self._seed = seed
        self._drawn: tuple[int, np.ndarray] | None = None

    def counts(self, examples: ArrayLike) -> np.ndarray:
        """[resamples, examples]: how often each of these examples, by number, enters each resample."""
        numbers = np.asarray(examples, dtype=np.int64)
        counts = np.empty((self.resamples, len(numbers)), dtype=np.float32)
        for block in np.unique(numbers // _BLOCK):
            in_block = numbers // _BLOCK == block
            counts[:, in_block] = self._block(int(block))[:, numbers[in_block] % _BLOCK]
        return counts

    def _block(self, block: int) -> np.ndarray:
        if self._drawn is None or self._drawn[0] != block:
            random = np.random.default_rng([self._seed, block])
            drawn = random.integers(0, len(_POISSON), (self.resamples, _BLOCK), dtype=np.uint16)
            self._drawn = block, _POISSON[drawn]
        return self._drawn[1]


_BLOCK = 512  # examples whose counts are drawn together
# Poisson(1) by inverting its distribution at 65536 steps: ten times as fast as drawing, probabilities off by < 2e-5.
_CHANCE = np.cumsum(np.exp(-1.0) / np.cumprod([1.0, *range(1, 10)]))
_POISSON = np.searchsorted(_CHANCE, (np.arange(65536) + 0.5) / 65536).astype(np.float32)


def percentile_interval(drawn: ArrayLike, *, units: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the 95% interval of a number on resamples of so many units, such as examples: [resamples, ...].

    The bootstrap takes the variance of n units as known, and (n - 1) / n of it: between the usual percentiles, 10
    examples leave out the truth in 10% of cases. The percentiles are those at the ends of a t-interval (Hesterberg
    2015). NaN resamples are left out; the ends are NaN if all are, and with fewer than six units.
    """
    from scipy.stats import norm, t

    table = np.asarray(drawn)
    if units < _FEWEST:
        return np.full(table.shape[1:], np.nan), np.full(table.shape[1:], np.nan)
    tail = 100 * float(norm.cdf(t.ppf(0.025, units - 1) * sqrt(units / (units - 1))))
    low, high = map(np.array, np.percentile(table, [tail, 100 - tail], axis=0))
    for index in map(tuple, np.argwhere(np.isnan(table).any(0))):
        column = table[(slice(None), *index)]
        column = column[~np.isnan(column)]
        if len(column):
            low[index], high[index] = np.percentile(column, [tail, 100 - tail])
    return low, high


def percentile_intervals(drawn: np.ndarray, *, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for [resamples, ..., columns], where every column has its own number of units."""
    ends = [percentile_interval(drawn[..., column], units=count) for column, count in enumerate(units)]
    low, high = (np.stack(columns, axis=-1) for columns in zip(*ends, strict=True))
    return low, high
