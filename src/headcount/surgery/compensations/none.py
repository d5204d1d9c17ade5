"""none: no compensation; the remaining weights are unchanged."""

from __future__ import annotations

from headcount.surgery.compensations.compensation import Calibration, Fit, fitted


def none(calibration: Calibration) -> Fit:
    """The weights of the remaining heads, unchanged."""
    return fitted(calibration, lambda _: (calibration.weight_OK, calibration.projection.bias_O))


COMPENSATION = none
