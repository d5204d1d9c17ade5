"""Record and Signature: what was measured, and what makes it trustworthy. Knows JSON, not torch, and no model."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headcount import journal, notebook
from headcount.errors import RecordError

SCHEMA = 1  # raised when a reader of the old form would misread the new one
_PACKAGES = ("headcount", "torch", "transformers", "numpy")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def installed_versions() -> dict[str, str]:
    """Versions of what the numbers depend on, read without importing any of it."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


@dataclass(frozen=True)
class Signature:
    """Where a number comes from: it travels with the number into every table and file."""

    model: str = ""
    weights: str = ""  # hash of all parameters and buffers
    data: str = ""  # hash of the data the number was measured on
    seed: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=installed_versions)
    time: str = field(default_factory=_now)

    def __str__(self) -> str:
        parts = {
            "model": self.model,
            "weights": self.weights[:12],
            "data": self.data[:12],
            "seed": self.seed,
            **self.arguments,
        }
        said = [f"{name}:{value}" for name, value in parts.items() if value not in ("", None)]
        return "|".join([*said, f"headcount:{self.versions.get('headcount', '?')}"])


@dataclass
class Record:
    """Everything one command measured, by part, with its signature. Reports read this and nothing else."""

    study: str
    signature: Signature
    parts: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    def to_json(self) -> str:
        return json.dumps(self.to_plain(), indent=2, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> Path:
        return journal.write_json(path, self.to_plain())

    def to_plain(self) -> dict[str, Any]:
        """What its JSON holds."""
        return {"schema": self.schema, "study": self.study, "signature": asdict(self.signature), "parts": self.parts}

    @classmethod
    def from_json(cls, text: str, *, source: str = "this text") -> Record:
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise RecordError(f"{source} is not JSON ({error}); expected a record written by headcount.") from error
        return cls.from_plain(data, source=source)

    @classmethod
    def from_plain(cls, data: Any, *, source: str = "this record") -> Record:
        if not isinstance(data, dict) or not isinstance(data.get("schema"), int):
            raise RecordError(
                f"{source} is not a record: it has no schema number; expected a record written by headcount."
            )
        if data["schema"] > SCHEMA:
            raise RecordError(
                f"{source} has record schema {data['schema']}, this headcount reads up to {SCHEMA}: update headcount."
            )
        try:
            return cls(str(data["study"]), Signature(**data["signature"]), dict(data["parts"]), data["schema"])
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{source} is a damaged record: {error!r}.") from error

    @classmethod
    def load(cls, path: str | Path) -> Record:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(f"Cannot read the record {path}: {error}.") from error
        return cls.from_json(text, source=str(path))

    def _repr_html_(self) -> str:
        """A table in Jupyter: what there is by part, and where it comes from."""
        rows = [(name, [notebook.Cell(_summed_up(part))]) for name, part in self.parts.items()]
        return notebook.table(
            f"Record of {self.study}", [], rows, side="left", below=f"{self.signature} | {self.signature.time}"
        )


def _summed_up(part: Any) -> str:
    """A part in a few words: its value where it is one, else how much there is of what."""
    if isinstance(part, Mapping):
        some = ", ".join(map(str, list(part)[:3]))
        return f"{len(part)}: {some}{', ...' if len(part) > 3 else ''}" if part else "none"
    if isinstance(part, list | tuple):
        return f"a list of {len(part)}"
    return f"{part:.6g}" if isinstance(part, float) else str(part)
