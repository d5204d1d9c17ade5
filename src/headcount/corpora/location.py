"""Location: what a data argument refers to (file, folder, hub data set or grammar), resolved in one place.

grammar[:LANGUAGE[:DOMAIN]]  the embedded corpus
hf:NAME[:CONFIG]             a data set of the hub
anything else                a folder or a file
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

GRAMMAR, HUB = "grammar", "hf:"
Kind = Literal["grammar", "hub", "folder", "file", "missing"]


@dataclass(frozen=True)
class Location:
    """Where data is stored."""

    data: str  # as the user wrote it
    kind: Kind

    @classmethod
    def of(cls, data: str | Path) -> Location:
        text = str(data)
        if text == GRAMMAR or text.startswith(f"{GRAMMAR}:"):
            return cls(text, "grammar")
        if text.startswith(HUB):
            return cls(text, "hub")
        path = Path(text)
        return cls(text, "folder" if path.is_dir() else "file" if path.is_file() else "missing")

    @property
    def path(self) -> Path:
        """Path of a folder or file."""
        return Path(self.data)

    @property
    def hub_name(self) -> str:
        """NAME[:CONFIG] of a data set of the hub."""
        return self.data.removeprefix(HUB)
