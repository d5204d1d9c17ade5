"""The interface that every export runtime implements, independent of the format."""

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
    """The reason why a model cannot be exported, and how to fix it."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}. {self.remedy}."


@dataclass(frozen=True)
class ExportedModel:
    """A model to export, in float32 on the CPU, with its tokenizer.

    Attributes:
        model: The model.
        tokenizer: Tokenizer of the model, or None.
        name: Folder, hub id or class name of the model, for messages and metadata.
    """

    model: PreTrainedModel
    tokenizer: Any
    name: str


class Runtime(ABC):
    """A target of `export`: it decides which models are supported, writes them and checks the result.

    Attributes:
        title: Official name of the runtime.
        types: Supported number formats of the weights, finest first. The first is the default.
        writers: Packages needed to write an export.
        checkers: Packages needed to check an export.
        suffixes: File suffixes of single-file exports. See `suffix`.
        extra: Extra of headcount that installs these packages.
    """

    title: str
    types: tuple[str, ...]
    writers: tuple[str, ...] = ()
    checkers: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    extra: str = ""

    def suffix(self, model: PreTrainedModel) -> str:
        """Return the file suffix if this model is exported as a single file, or an empty string for a folder."""
        return ""

    @abstractmethod
    def obstacle(self, model: PreTrainedModel) -> Obstacle | None:
        """Return why this runtime does not support the model, or None if it does."""

    def shape(self, model: PreTrainedModel) -> Shape:
        """Return the constraint on the heads of a pruned model that this runtime supports without a workaround."""
        return FREE

    def tokenizer_obstacle(self, tokenizer: PreTrainedTokenizerBase) -> Obstacle | None:
        """Return why this runtime does not support the tokenizer, which may be None, or None if it does."""
        return None

    def check_rows(self, subject: ExportedModel) -> None:
        """Raise if the tokenizer has tokens that the model does not have, and this runtime cannot do without them."""
        return

    def costs(self, subject: ExportedModel) -> list[str]:
        """Describe the overhead of the format for a supported model, such as padded or repeated heads."""
        return []

    @abstractmethod
    def write(self, subject: ExportedModel, target: Path, *, dtype: str) -> None:
        """Write the model to a new file or into an empty folder.

        Args:
            subject: The model and its tokenizer.
            target: New file, or empty folder.
            dtype: Number format of the weights, one of `types`.
        """

    @abstractmethod
    def check(self, subject: ExportedModel, target: Path) -> Agreement:
        """Run the export in the runtime and compare its outputs with those of the model."""

    def open(self, path: Path, *, threads: int) -> Measured | None:
        """Load an export of this runtime for timing. Return None if the path is not an export of this runtime."""
        return None


def missing(packages: Sequence[str]) -> list[str]:
    """Return the packages that are not installed."""
    return [name for name in packages if importlib.util.find_spec(name) is None]
