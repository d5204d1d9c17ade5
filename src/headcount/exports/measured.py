"""Measured: an export that is loaded by its runtime and can be timed beside PyTorch models. Knows no runtime."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np

from headcount.record.results.bench import Size
from headcount.timing import TimedCall

_SAMPLE = 1_000_000  # bytes of each file that a fingerprint reads, at its end


class Measured(ABC):
    """An export, loaded."""

    device = "cpu"

    def __init__(self, path: Path) -> None:
        self.path = path

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for file in files_of(self.path):
            with open(file, "rb") as stream:
                stream.seek(max(0, file.stat().st_size - _SAMPLE))
                digest.update(stream.read())
        return digest.hexdigest()[:16]

    def limit(self, length: int) -> int:
        return length

    def size(self, length: int) -> Size:
        on_disk = sum(file.stat().st_size for file in files_of(self.path))
        return Size(None, None, on_disk, self.cache_bytes(length), None, length)

    @abstractmethod
    def cache_bytes(self, length: int) -> int | None:
        """Bytes of keys and values for one text of this many tokens; None if the runtime does not report it."""

    @abstractmethod
    def works(self, batch: int, length: int, written: int) -> dict[str, TimedCall]:
        """What is timed: reading a batch, and where the model writes, writing a few tokens after it."""


def files_of(path: Path) -> list[Path]:
    """The file itself, or all files of a folder."""
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def token_ids(batch: int, length: int) -> np.ndarray:
    """Made-up text: small numbers, which every vocabulary has."""
    return np.random.default_rng(0).integers(3, 32, size=(batch, length))
