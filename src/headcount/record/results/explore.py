"""The result of the first part of `headcount explore`: the measures and their texts, in words."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.record.result import Result


@dataclass(frozen=True)
class Setup(Result):
    """What importance is for this model, and which texts are used."""

    architecture: str
    objective: str  # the task that importance is measured by
    measured_by: str
    because: str  # reason, if the class of the model does not decide it; else empty
    looked_at: str  # texts of roles and confidence
    gradient_on: str  # texts of the gradient score; empty if it is not defined
    one_out_on: str
    counted_in: str  # texts that token frequencies are counted in


RESULT = Setup
