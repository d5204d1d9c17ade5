"""Ridge: least squares with a penalty towards the old weights, its strength chosen on held-out rows. Pure functions.

The problem is min |X (W0 + D) - Y|^2 + rho |D|^2 over D. With S = X'X and R = X'(Y - X W0), both means over rows,
D = (S + rho)^-1 R. In the eigenvectors of S, the solution and the held-out error of every strength take little time.
Shapes: K inputs, O outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

# As shares of the mean square of an input. Without held-out rows, no strength can be chosen.
STRENGTHS: tuple[float, ...] = tuple(float(value) for value in np.logspace(-8, 2, 21))
DEFAULT = 1e-3


@dataclass(frozen=True)
class Normal:
    """The normal equations of a change of the weights, as means over rows."""

    s_KK: Tensor
    r_KO: Tensor

    @property
    def unit(self) -> float:
        """The mean square of an input, the unit of strengths."""
        return float(self.s_KK.diagonal().mean()) if len(self.s_KK) else 0.0


def choose(fit: Normal, held_out: Normal | None) -> float:
    """The strength with the smallest error on held-out rows; infinite if every change is worse than none."""
    if held_out is None or not fit.unit > 0:
        return DEFAULT
    values_K, vectors_KK = torch.linalg.eigh(fit.s_KK)
    values_K = values_K.clamp_min(0)
    r_KO, other_KO = vectors_KK.T @ fit.r_KO, vectors_KK.T @ held_out.r_KO
    quadratic_KK = (vectors_KK.T @ held_out.s_KK @ vectors_KK) * (r_KO @ r_KO.T)
    linear_K = (r_KO * other_KO).sum(1)
    best, least = float("inf"), 0.0  # no change: the error stays what it is
    for strength in STRENGTHS:
        shrunk_K = 1 / (values_K + strength * fit.unit)
        change = float(shrunk_K @ quadratic_KK @ shrunk_K - 2 * shrunk_K @ linear_K)
        if change < least:
            best, least = strength, change
    return best


def change(normal: Normal, strength: float) -> Tensor:
    """[K, O]: the change that solves the normal equations at a strength."""
    if not np.isfinite(strength) or not normal.unit > 0:
        return torch.zeros_like(normal.r_KO)
    damped_KK = normal.s_KK + strength * normal.unit * torch.eye(len(normal.s_KK)).to(normal.s_KK)
    return torch.cholesky_solve(normal.r_KO, torch.linalg.cholesky(damped_KK))
