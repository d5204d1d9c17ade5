"""The result of `headcount train`: a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headcount.record.result import Result


@dataclass(frozen=True)
class EpochMeasured:
    """What was measured on the development data after one epoch."""

    epoch: int
    step: int
    measures: Mapping[str, float]


@dataclass(frozen=True)
class TrainingRun(Result):
    """The epochs of a run, and the one that became the final model."""

    task: str
    candidate: str  # the final model: an epoch, or the average of epochs
    candidates: Mapping[str, Mapping[str, float]]  # candidate -> measures
    epochs: tuple[EpochMeasured, ...]
    steps: int
    seconds: float
    texts: Mapping[str, int]  # split -> examples
    before: Mapping[str, float] = field(default_factory=dict)  # measures before the first step, of fine-tuning
    languages: tuple[str, ...] = ()
    skipped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # split -> reason -> skipped examples


RESULT = TrainingRun
