"""Runtime: what every export has to say and do. Knows no format."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.exports.agreement import Agreement
from headcount.exports.measured import Measured
from headcount.selection.shape import FREE, Shape


@dataclass(frozen=True)
class Obstacle:
    """Why a model cannot be exported, and what can be done about it."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}. {self.remedy}."


@dataclass(frozen=True)
class ExportedModel:
    """What is exported: a model in float32 on the CPU, and the tokenizer that belongs to it."""

    model: PreTrainedModel
    tokenizer: Any  # None where there is none
    name: str


class Runtime(ABC):
    """One runtime: which models it takes, how they are written for it, and how the result is checked in it."""

    title: str  # what its makers call it
    types: tuple[str, ...]  # number formats of the weights; the first is the default
    writers: tuple[str, ...] = ()  # packages that writing needs
    checkers: tuple[str, ...] = ()  # packages that checking needs
    suffixes: tuple[str, ...] = ()  # of the one file that a model may become; see `suffix`
    extra: str = ""  # the extra of headcount that installs these packages

    def suffix(self, model: PreTrainedModel) -> str:
        """How the name of the one file ends that this model becomes; empty where it becomes a folder."""
        return ""

    @abstractmethod
    def obstacle(self, model: PreTrainedModel) -> Obstacle | None:
        """Why this runtime cannot take the model; None where it can."""

    def shape(self, model: PreTrainedModel) -> Shape:
        """What the heads of a pruned model must look like for this runtime to take it without a workaround."""
        return FREE

    def tokenizer_obstacle(self, tokenizer: PreTrainedTokenizerBase) -> Obstacle | None:
        """Why this runtime cannot take the tokenizer (None: there is none); None where it can."""
        return None

    def costs(self, subject: ExportedModel) -> list[str]:
        """What the form costs beyond the model itself, in words; of a model that has no obstacle."""
        return []

    @abstractmethod
    def write(self, subject: ExportedModel, target: Path, *, dtype: str) -> None:
        """Write the model to a file that is not there yet, or into an empty folder.

        dtype: one of `types`.
        """

    @abstractmethod
    def check(self, subject: ExportedModel, target: Path) -> Agreement:
        """Run what was written in the runtime and compare it with the model."""

    def open(self, path: Path, *, threads: int) -> Measured | None:
        """An export of this runtime, loaded so that it can be timed; None where the path holds none."""
        return None


def missing(packages: Sequence[str]) -> list[str]:
    """Those of these packages that are not installed."""
    return [name for name in packages if importlib.util.find_spec(name) is None]
