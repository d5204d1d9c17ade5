"""bias: add the mean output of the removed heads to the bias of the output projection."""

from __future__ import annotations

from headcount.errors import UsageError
from headcount.surgery.compensations.compensation import Calibration, Fit, fitted


def bias(calibration: Calibration) -> Fit:
    """Weights unchanged; the same as masking with `replace="mean"`, folded in."""
    bias_O = calibration.bias_O
    if bias_O is None:
        raise UsageError(
            "The output projections of this model have no bias to add the mean outputs to; "
            "pass add_bias=True (--add-bias) to give them one, or compensate by scale or lstsq."
        )
    return fitted(calibration, lambda moments: (calibration.weight_OK, bias_O + calibration.lost(moments)))


COMPENSATION = bias
