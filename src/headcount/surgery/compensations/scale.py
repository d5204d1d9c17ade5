"""scale: one factor for each remaining head, by ridge regression towards 1.

Shapes: H remaining heads, D head size, K = H x D, O outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.surgery.compensations.compensation import Calibration, Fit, fitted
from headcount.surgery.compensations.moments import Moments
from headcount.surgery.compensations.ridge import Normal, change, choose


def scale(calibration: Calibration) -> Fit:
    """min |sum_h s_h X_h W_h - Y|^2 + rho |s - 1|^2 over the factors s (mask tuning of Kwon et al. 2022, per site)."""
    fit, held_out = calibration.fit, calibration.held_out
    other = _factors(calibration, held_out, fit) if float(held_out.count) else None
    strength = choose(_factors(calibration, fit, fit), other)

    def solve(moments: Moments) -> tuple[Tensor, Tensor | None]:
        factors_H = 1 + change(_factors(calibration, moments, moments), strength)[:, 0]
        weight_OK = calibration.weight_OK * factors_H.repeat_interleave(calibration.head_dim)
        return weight_OK, calibration.bias_for(weight_OK, moments)

    all_inputs = calibration.all
    rho = strength * _factors(calibration, all_inputs, all_inputs).unit * float(all_inputs.count)
    return fitted(calibration, solve, rho)


def _factors(calibration: Calibration, moments: Moments, of: Moments) -> Normal:
    """The normal equations of the factors, from those of the weights: each head's output is one input."""
    normal, weight_OK, size = calibration.normal(moments, of), calibration.weight_OK, calibration.head_dim
    heads = len(calibration.keep)
    gram_KK = normal.s_KK * (weight_OK.T @ weight_OK)
    s_HH = gram_KK.reshape(heads, size, heads, size).sum((1, 3))
    r_H = (normal.r_KO * weight_OK.T).reshape(heads, size * len(weight_OK)).sum(1)
    return Normal(s_HH, torch.atleast_2d(r_H).T)


COMPENSATION = scale
