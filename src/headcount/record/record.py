"""Record and Signature: the result of a measurement with its provenance. Knows JSON, not torch."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from headcount import journal, notebook
from headcount.errors import HeadcountError, RecordError, UnknownHead
from headcount.record.codec import decode, encode
from headcount.record.earlier import is_earlier
from headcount.registry import Registry

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from headcount.record.result import Result

    Parts = TypeVar("Parts", bound=Result, default=Any)
else:
    from typing import TypeVar

    Parts = TypeVar("Parts")

SCHEMA = 2  # version of the record around the parts; each result has its own version
results: Registry[type[Any]] = Registry("result", "headcount.record.results", "RESULT")  # by study
_COMMANDS = re.compile("[\x7f-\x9f]")  # terminal control characters: DEL and C1; U+009B begins an escape sequence
_PACKAGES = ("headcount", "torch", "transformers", "numpy")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def installed_versions() -> dict[str, str]:
    """Versions of the packages that results depend on, read without importing them."""
    return {"python": platform.python_version()} | {package: _version(package) for package in _PACKAGES}


@cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@dataclass(frozen=True)
class Signature:
    """What a number was measured with. It is stored with the number in every record.

    Attributes:
        model: Folder or hub id of the model.
        weights: Hash of all parameters and buffers.
        data: Hash of the data.
        seed: Random seed, if the result depends on one.
        arguments: Settings of the measurement.
        versions: Versions of Python, headcount, torch, transformers and numpy.
        time: Time of the measurement, in UTC.
    """

    model: str = ""
    weights: str = ""  # hash of all parameters and buffers
    data: str = ""  # hash of the data the number was measured on
    seed: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=installed_versions)
    time: str = field(default_factory=_now)

    def __post_init__(self) -> None:
        """Arguments are what their JSON holds: a record that was saved and loaded says the same in reports."""
        object.__setattr__(self, "arguments", encode(self.arguments))

    def __str__(self) -> str:
        parts = {
            "model": self.model,
            "weights": self.weights[:12],
            "data": self.data[:12],
            "seed": self.seed,
            **self.arguments,
        }
        parts["data"] = " ".join(filter(None, (str(self.arguments.get("data") or ""), self.data[:12])))
        words = [f"{name}:{value}" for name, value in parts.items() if value not in ("", None)]
        return "|".join([*words, f"headcount:{self.versions.get('headcount', '?')}"])


@dataclass(frozen=True)
class Record(Generic[Parts]):
    """Result of one command with its signature. It is written as JSON, and reports read nothing else.

    Attributes:
        study: Name of the command or study.
        signature: Model, data, settings and versions behind the numbers.
        parts: What was measured, as a dataclass of `headcount.record.results`.
    """

    study: str
    signature: Signature
    parts: Parts

    def on_data(self, path: str, split: str | None = None) -> Record[Parts]:
        """The same with the path of its data, of which a signature has the hash; unchanged if it has one, or no data.

        split: of the data, to append if the parts do not say what was measured on.
        """
        arguments = self.signature.arguments
        if not path or not self.signature.data or "data" in arguments:
            return self
        label = f"{path} {split}" if split and getattr(self.parts, "measured_on", None) is None else path
        return replace(self, signature=replace(self.signature, arguments={**arguments, "data": label}))

    def to_json(self) -> str:
        """The record as JSON text. Characters that a terminal would take for commands are escaped."""
        text = json.dumps(self.to_plain(), indent=2, ensure_ascii=False, allow_nan=False)
        return _COMMANDS.sub(lambda character: f"\\u{ord(character[0]):04x}", text)

    def save(self, path: str | Path) -> Path:
        """Write the record to a file atomically.

        What stands there stays as NAME.old, unless it is a record of the same settings with the same parts or fewer.
        """
        plain = self.to_plain()
        return journal.write_json(path, plain, replaces=lambda file: is_earlier(file, plain))

    def to_plain(self) -> dict[str, Any]:
        """The record as dicts, lists, numbers and strings."""
        parts: Any = self.parts
        return {
            "schema": SCHEMA,
            "study": self.study,
            "version": parts.VERSION,
            "signature": encode(self.signature),
            "parts": encode(parts),
        }

    @classmethod
    def from_json(cls, text: str, *, source: str = "this text") -> Record[Any]:
        """Read a record from JSON text. `source` names the text in error messages."""
        return cls.from_plain(journal.parse_json(text, source=source), source=source)

    @classmethod
    def from_plain(cls, data: object, *, source: str = "this record") -> Record[Any]:
        """Read a record from the content of its JSON. Raises RecordError if it is not a record of this version."""
        if not isinstance(data, dict) or type(data.get("schema")) is not int:
            raise RecordError(
                f"{source} is not a record: it has no schema number; expected a record written by headcount."
            )
        _check_version("schema", data["schema"], SCHEMA, source)
        plain = decode(_Plain, {key: value for key, value in data.items() if key != "schema"}, source=source)
        if plain.study not in results:
            raise RecordError(
                f"{source} is a record of {plain.study}, which this version of headcount does not know; it reads "
                f"{', '.join(results.names())}. Run the command that wrote it again."
            )
        kind = results[plain.study]
        _check_version(f"version of a {plain.study} record", plain.version, kind.VERSION, source)
        return cls(plain.study, plain.signature, decode(kind, plain.parts, source=source, path="parts"))

    @classmethod
    def load(cls, path: str | Path) -> Record[Any]:
        """Read a record file, such as DIR/record.json. Raises RecordError if it is not a valid record."""
        return cls.from_plain(journal.read_json(path), source=str(path))

    def _repr_html_(self) -> str:
        """A table in Jupyter: a summary of each part, and the signature."""
        parts: Any = self.parts
        values = {item.name: getattr(parts, item.name) for item in fields(parts)}
        rows = [(name, [notebook.Cell(_summed_up(part))]) for name, part in values.items()]
        return notebook.table(
            f"Record of {self.study}", [], rows, side="left", below=f"{self.signature} | {self.signature.time}"
        )


@dataclass(frozen=True)
class _Plain:
    """The content of a record file besides the schema number."""

    study: str
    version: int
    signature: Signature
    parts: Mapping[str, Any]


def _check_version(what: str, number: int, current: int, source: str) -> None:
    if number > current:
        raise RecordError(f"{source} has {what} {number}, this headcount reads {current}: update headcount.")
    if number < current:
        raise RecordError(f"{source} has {what} {number}, this headcount reads {current}: run its command again.")


@contextlib.contextmanager
def displayed(records: Iterable[str | Path]) -> Iterator[None]:
    """Turn errors inside the block into RecordError: a record from elsewhere may lack parts or have wrong types.

    records: files to name in the message.
    """
    try:
        yield
    except UnknownHead as error:
        raise RecordError(
            f"{_listed(records)} cannot be shown: {error} Run the command that wrote it again."
        ) from error
    except HeadcountError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise RecordError(
            f"{_listed(records)} cannot be shown: a value is missing or of the wrong type "
            f"({type(error).__name__}: {error}). Run the command that wrote it again."
        ) from error


def _listed(records: Iterable[str | Path]) -> str:
    return ", ".join(map(str, records))


def _summed_up(part: object) -> str:
    """A short summary of a part: its value, or the number of its items."""
    if isinstance(part, Mapping):
        examples = ", ".join(map(str, list(part)[:3]))
        return f"{len(part)}: {examples}{', ...' if len(part) > 3 else ''}" if part else "none"
    if isinstance(part, list | tuple):
        return f"a list of {len(part)}"
    return f"{part:.6g}" if isinstance(part, float) else str(part)
