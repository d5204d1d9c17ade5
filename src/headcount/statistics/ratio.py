"""Ratios of sums over sentences, in constant memory: sentences are added in batches and not stored.

A share of hits, or a mean over tokens, is the ratio of two sums over sentences. Where it depends on the length of a
sentence, the few long ones decide it: with lengths that are log-normal, 18% of the bootstrap's intervals of 30
sentences left out the truth. Products of both numbers of a sentence, up to the third order, are enough for the
skewness of their influence.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from headcount.statistics.skewness import mean_ends


@dataclass
class RatioSums:
    """Sums over sentences of a^i b^j, where the ratio is that of the sums of a and b."""

    count: np.ndarray  # of sentences whose b is not 0
    a: np.ndarray
    b: np.ndarray
    aa: np.ndarray
    ab: np.ndarray
    bb: np.ndarray
    aaa: np.ndarray
    aab: np.ndarray
    abb: np.ndarray
    bbb: np.ndarray

    @classmethod
    def of(cls, above: np.ndarray, below: np.ndarray) -> RatioSums:
        """Of numerators [sentences, ...] and divisors [sentences, ...] that can be broadcast to them."""
        a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
        aa, ab, bb = a * a, a * b, b * b
        products = (b != 0, a, b, aa, ab, bb, aa * a, aa * b, ab * b, bb * b)
        return cls(*(product.sum(0, dtype=np.float64) for product in products))

    @classmethod
    def none(cls, above: tuple[int, ...], below: tuple[int, ...]) -> RatioSums:
        """Of no sentences, for numerators and divisors of these shapes."""
        return cls.of(np.zeros((0, *above)), np.zeros((0, *below)))

    def __add__(self, other: RatioSums) -> RatioSums:
        return RatioSums(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def value(self) -> np.ndarray:
        """The ratio; NaN if the divisor is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.a / self.b)

    @property
    def sentences(self) -> np.ndarray:
        """As many as would vary alike if all had the same divisor: (sum of b)^2 / (sum of squared b)."""
        return np.divide(self.b**2, self.bb, out=np.zeros_like(self.b), where=self.bb > 0)

    def error(self, sentences: np.ndarray) -> np.ndarray:
        """Standard error of the ratio, corrected for so few sentences."""
        r = self.value
        squares = np.maximum(self.aa - 2 * r * self.ab + r**2 * self.bb, 0.0)  # of a - r b
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt(squares * sentences / np.maximum(sentences - 1, 1e-300)) / self.b)

    def ends(self, sentences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the 95% t-interval over so many sentences, corrected for a long tail of them."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return mean_ends(self.value, self.error(sentences), self._cubes() / self.b**3, sentences)

    def widen(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ends of a bootstrap interval, the one on the side of a long tail moved outwards."""
        lowest, highest = self.ends(self.count)
        cubes = self._cubes()
        return np.where(cubes < 0, np.minimum(low, lowest), low), np.where(cubes > 0, np.maximum(high, highest), high)

    def _cubes(self) -> np.ndarray:
        """Sum of the cubes of a - r b."""
        r = self.value
        with np.errstate(invalid="ignore"):
            return np.asarray(self.aaa - 3 * r * self.aab + 3 * r**2 * self.abb - r**3 * self.bbb)
