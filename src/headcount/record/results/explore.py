"""The result of the first part of `headcount explore`: what is measured on what, in words."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.record.result import Result


@dataclass(frozen=True)
class Setup(Result):
    """What importance is for this model, and which texts are used."""

    architecture: str
    objective: str  # the task that importance is measured by
    measured_by: str
    because: str  # why, where the class of the model alone does not say it; else empty
    looked_at: str  # texts of roles and confidence
    gradient_on: str  # texts of the gradient score; empty where it is not defined
    one_out_on: str
    counted_in: str  # texts that tell how rare a token is


RESULT = Setup
