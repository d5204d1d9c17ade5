"""Statistics that every measurement shares. Pure functions of numpy arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Interval(NamedTuple):
    """An estimate with the interval that holds the true value with the stated confidence."""

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
