"""Record and Signature: what was measured, and what makes it trustworthy. Knows JSON, not torch, and no model."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headcount import journal, notebook
from headcount.errors import HeadcountError, RecordError

SCHEMA = 1  # raised when a reader of the old form would misread the new one
_COMMANDS = re.compile("[\x7f-\x9f]")  # to terminals: DEL and C1, of which U+009B begins an escape sequence
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


_RECORD = {"study": str, "signature": dict, "parts": dict}
_SIGNATURE = {
    "model": str, "weights": str, "data": str, "seed": int | None, "arguments": dict, "versions": dict, "time": str,
}  # fmt: skip


@dataclass
class Record:
    """Everything one command measured, by part, with its signature. Reports read this and nothing else."""

    study: str
    signature: Signature
    parts: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    def to_json(self) -> str:
        """For a terminal too, which takes some characters for commands; JSON escapes only half of them by itself."""
        text = json.dumps(self.to_plain(), indent=2, ensure_ascii=False, allow_nan=False)
        return _COMMANDS.sub(lambda character: f"\\u{ord(character[0]):04x}", text)

    def save(self, path: str | Path) -> Path:
        return journal.write_json(path, self.to_plain())

    def to_plain(self) -> dict[str, Any]:
        """What its JSON holds."""
        return {"schema": self.schema, "study": self.study, "signature": asdict(self.signature), "parts": self.parts}

    @classmethod
    def from_json(cls, text: str, *, source: str = "this text") -> Record:
        return cls.from_plain(journal.parse_json(text, source=source), source=source)

    @classmethod
    def from_plain(cls, data: Any, *, source: str = "this record") -> Record:
        if not isinstance(data, dict) or type(data.get("schema")) is not int:
            raise RecordError(
                f"{source} is not a record: it has no schema number; expected a record written by headcount."
            )
        if data["schema"] > SCHEMA:
            raise RecordError(
                f"{source} has record schema {data['schema']}, this headcount reads up to {SCHEMA}: update headcount."
            )
        try:
            study, signature, parts = data["study"], data["signature"], data["parts"]
            _check_types(data, _RECORD, source)
            _check_types(signature, _SIGNATURE, f"{source}, signature,")
            return cls(study, Signature(**signature), parts, data["schema"])
        except (KeyError, TypeError) as error:
            raise RecordError(f"{source} is a damaged record: {error!r}.") from error

    @classmethod
    def load(cls, path: str | Path) -> Record:
        return cls.from_plain(journal.read_json(path), source=str(path))

    def _repr_html_(self) -> str:
        """A table in Jupyter: what there is by part, and where it comes from."""
        rows = [(name, [notebook.Cell(_summed_up(part))]) for name, part in self.parts.items()]
        return notebook.table(
            f"Record of {self.study}", [], rows, side="left", below=f"{self.signature} | {self.signature.time}"
        )


def _check_types(data: Mapping[str, Any], types: Mapping[str, Any], source: str) -> None:
    for name, expected in types.items():
        if name in data and not isinstance(data[name], expected):
            raise RecordError(f"{source} is a damaged record: {name} is of type {type(data[name]).__name__}.")


@contextlib.contextmanager
def displayed(records: Iterable[str | Path]) -> Iterator[None]:
    """Show records that others may have written: a part that is missing or of another type is an error of the record.

    records: their files, for the message.
    """
    try:
        yield
    except HeadcountError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise RecordError(
            f"{', '.join(map(str, records))} cannot be shown: something in it is missing or of another type "
            f"({type(error).__name__}: {error}). Run the command again that wrote it."
        ) from error


def _summed_up(part: Any) -> str:
    """A part in a few words: its value where it is one, else how much there is of what."""
    if isinstance(part, Mapping):
        some = ", ".join(map(str, list(part)[:3]))
        return f"{len(part)}: {some}{', ...' if len(part) > 3 else ''}" if part else "none"
    if isinstance(part, list | tuple):
        return f"a list of {len(part)}"
    return f"{part:.6g}" if isinstance(part, float) else str(part)
