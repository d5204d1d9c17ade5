"""lstsq: refit the output weights of the remaining heads by ridge regression towards their old values.

Shapes: K = remaining heads x head size, O outputs.
"""

from __future__ import annotations

from torch import Tensor

from headcount.surgery.compensations.compensation import Calibration, Fit, fitted
from headcount.surgery.compensations.moments import Moments
from headcount.surgery.compensations.ridge import change, choose


def lstsq(calibration: Calibration) -> Fit:
    """min |X W - Y|^2 + rho |W - W0|^2, with a free bias if the projection has one."""
    fit, held_out = calibration.fit, calibration.held_out
    other = calibration.normal(held_out, fit) if float(held_out.count) else None
    strength = choose(calibration.normal(fit, fit), other)

    def solve(moments: Moments) -> tuple[Tensor, Tensor | None]:
        weight_OK = calibration.weight_OK + change(calibration.normal(moments, moments), strength).T
        return weight_OK, calibration.bias_for(weight_OK, moments)

    all_inputs = calibration.all
    rho = strength * calibration.normal(all_inputs, all_inputs).unit * float(all_inputs.count)
    return fitted(calibration, solve, rho)


COMPENSATION = lstsq
