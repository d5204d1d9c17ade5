"""The interface of a loaded export that `bench` measures and compares with PyTorch models."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from torch import nn

from headcount.checkpoints.export_list import FILE as EXPORT_LIST
from headcount.checkpoints.export_list import is_exported
from headcount.record.results.bench import Size
from headcount.timing import TimedCall


class Measured(ABC):
    """An export that its runtime has loaded."""

    device = "cpu"

    def __init__(self, path: Path) -> None:
        self.path = path

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for file in files_of(self.path):
            with open(file, "rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()[:16]

    def limit(self, length: int, written: int) -> int:
        """Return this many input tokens, or as many as the runtime reads with those that are written after them."""
        return length

    def size(self, length: int) -> Size:
        on_disk = sum(file.stat().st_size for file in files_of(self.path))
        return Size(None, None, on_disk, self.cache_bytes(length), None, length)

    @abstractmethod
    def cache_bytes(self, length: int) -> int | None:
        """Return the size in bytes of the key/value cache for one text of this length, or None if it is unknown."""

    def module(self) -> nn.Module | None:
        """Return the export as a module, to measure its quality, or None if its runtime does not give logits."""
        return None

    @abstractmethod
    def works(self, batch: int, length: int, written: int) -> dict[str, TimedCall]:
        """Return the functions to time: reading a batch and, for generative models, writing a few tokens after it."""


def files_of(path: Path) -> list[Path]:
    """Return the files of an export, without those that the user put beside them; the path itself if it is a file."""
    if not path.is_dir():
        return [path]
    listed = (path / EXPORT_LIST).is_file()  # exports of earlier versions and of other programs have none
    written = [entry for entry in path.iterdir() if not listed or is_exported(entry)]
    return sorted(file for entry in written for file in (entry, *entry.rglob("*")) if file.is_file())


def token_ids(batch: int, length: int) -> np.ndarray:
    """Return random token ids, small enough for every vocabulary."""
    return np.random.default_rng(0).integers(3, 32, size=(batch, length))
