"""Hard Concrete: numbers in [0, 1] that are exactly 0 or 1 with some probability, and still have gradients.

s = sigmoid((log u - log(1 - u) + log_a) / beta), u uniform; g = clip(s (high - low) + low, 0, 1).
Louizos et al. 2018; Voita et al. 2019, section 6. Knows no heads and no model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.record.results.prune import HardConcrete as Distribution

_FIGURE_6 = (0.0, 2.0, -3.0)  # log_a of the distributions in the figure


@dataclass(frozen=True)
class HardConcrete:
    """A family of distributions, one for each value of log_a; larger is more open."""

    beta: float = 0.33  # temperature: the lower, the less mass between 0 and 1
    low: float = -0.1  # values stretched below 0 become 0,
    high: float = 1.1  # values stretched above 1 become 1

    def __post_init__(self) -> None:
        if self.beta <= 0 or self.low >= 0 or self.high <= 1:
            raise UsageError(f"A Hard Concrete gate needs beta above 0, low below 0 and high above 1; got {self}.")

    def sample(self, log_a: Tensor, uniform: Tensor) -> Tensor:
        """The gates for uniform random numbers from (0, 1)."""
        return self._stretch(torch.sigmoid((torch.logit(uniform) + log_a) / self.beta))

    def zero(self, log_a: Tensor) -> Tensor:
        """P(g = 0)."""
        return torch.sigmoid(self._below - log_a)

    def nonzero(self, log_a: Tensor) -> Tensor:
        """P(g != 0): what the penalty counts."""
        return torch.sigmoid(log_a - self._below)

    def one(self, log_a: Tensor) -> Tensor:
        """P(g = 1)."""
        return torch.sigmoid(log_a - self._above)

    def mean(self, log_a: Tensor) -> Tensor:
        """E g: the integral of P(g > t) over t from 0 to 1, which is smooth: 32 points are exact to rounding."""
        points_P, weights_P = (torch.as_tensor(part, device=log_a.device) for part in _quadrature(32))
        offset_P = self.beta * torch.log((points_P - self.low) / (self.high - points_P))
        return (torch.sigmoid(log_a.double()[..., None] - offset_P) @ weights_P).to(log_a.dtype)

    def open(self, log_a: Tensor) -> Tensor:
        """Test-time gates: 1 if P(1) > P(0), else 0."""
        return (self.one(log_a) > self.zero(log_a)).to(log_a.dtype)

    def soft(self, log_a: Tensor) -> Tensor:
        """Test-time gates in Louizos et al. and in the code of Voita et al.: the gate without noise and beta."""
        return self._stretch(torch.sigmoid(log_a))

    @property
    def soft_closing(self) -> float:
        """log_a at which `soft` becomes 0."""
        return math.log(-self.low / self.high)

    def figure_6(self) -> tuple[Distribution, ...]:
        """The distributions that Figure 6 of Voita et al. 2019 draws, for a record."""
        return tuple(self.to_result(log_a) for log_a in _FIGURE_6)

    def to_result(self, log_a: float) -> Distribution:
        """One distribution of the family, for a record."""
        value = torch.tensor(log_a, dtype=torch.float64)
        shares = (float(share(value)) for share in (self.zero, self.one, self.mean))
        return Distribution(log_a, self.beta, self.low, self.high, *shares)

    def _stretch(self, share: Tensor) -> Tensor:
        return (share * (self.high - self.low) + self.low).clamp(0, 1)

    @property
    def _below(self) -> float:
        return self.beta * math.log(-self.low / self.high)

    @property
    def _above(self) -> float:
        return self.beta * math.log((1 - self.low) / (self.high - 1))


@cache
def _quadrature(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points and weights on (0, 1)."""
    places, weights = np.polynomial.legendre.leggauss(points)
    return (places + 1) / 2, weights / 2
