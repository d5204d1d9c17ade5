"""Conservation: the share of relevance that reaches each cut of the network, and the share absorbed by constants.

Over all predictions, with z the logit, r the relevance that crosses a cut, c that of constants above it:
kept = sum r / sum z, absorbed = sum |c| / sum |z|, error = sum |z - r - c| / sum (|z| + |r| + |c|).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from headcount.errors import ModelError
from headcount.probes.relevance.trace import Relevance, Trace

Sums = dict[str, np.ndarray]  # cut, with its number -> sums of z, r, |z|, |c|, |z - r - c|, |z| + |r| + |c|
LARGEST_ERROR = 1e-2  # rounding stays far below it
_PREFIX = "cut"


def conserved(trace: Trace, logits_B: Tensor, relevance: Relevance) -> Sums:
    """Contribution of one prediction of each example to the sums of every cut."""
    z = logits_B.detach().double().cpu().numpy()
    sums = {}
    for number, (cut, r, c) in enumerate(
        zip(trace.cuts, _numbers(relevance.cuts), _numbers(relevance.constants), strict=True)
    ):
        columns = (z, r, np.abs(z), np.abs(c), np.abs(z - r - c), np.abs(z) + np.abs(r) + np.abs(c))
        sums[f"{_PREFIX} {number:03} {cut.name}"] = np.array([column.sum() for column in columns])
    return sums


def summary(sums: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The cuts from the predictions down to the input, and the total share absorbed by constants."""
    cuts = {}
    for name in sorted((name for name in sums if name.startswith(_PREFIX)), reverse=True):
        z, r, size, absorbed, error, total = sums[name].tolist()
        cuts[name.split(maxsplit=2)[2]] = {
            "kept": r / (z or 1.0),
            "absorbed": absorbed / (size or 1.0),
            "error": error / (total or 1.0),
        }
    return {"absorbed": cuts["input"]["absorbed"], "cuts": cuts}


def check(measured: Mapping[str, Any]) -> None:
    """Raise if relevance is not conserved: an operation of the model was not treated correctly."""
    for name, cut in measured["cuts"].items():
        if not cut["error"] <= LARGEST_ERROR:
            raise ModelError(
                f"Relevance does not add up at the cut {name}: {cut['error']:.1%} is unaccounted for. The model has an "
                "operation that relevance cannot be traced through; the gradient score works on every model."
            )


def _numbers(values: Tensor) -> np.ndarray:
    return values.double().cpu().numpy()
