"""Options: the parameters of a stage, each defined once with type, default, range and help. Imports no torch.

Python keywords, command-line options, --help and the arguments of records are derived from the fields.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar

from headcount.errors import UnknownName, UsageError, check_name

OptionsType = TypeVar("OptionsType", bound="Options")


@dataclass(frozen=True)
class Limits:
    """Allowed values of an option, and its help."""

    help: str
    type: type
    minimum: float | None = None
    above: bool = False  # the minimum itself is not allowed
    maximum: float | None = None
    choices: Collection[str] = ()
    share: bool = False  # 0.1 in Python, 10% on the command line
    several: bool = False  # on the command line: several values, separated by commas, are a sweep
    flag: str = ""  # on the command line; derived from the name if empty

    def check(self, name: str, value: Any) -> None:
        if value is None:
            return
        if self.choices and value not in self.choices:
            raise UnknownName(name, str(value), self.choices)
        if not self._of_type(value):
            raise UsageError(f"{name} must be {self.range}; got {value!r}.")
        if isinstance(value, str | bool):
            return
        low = self.minimum is None or value > self.minimum or (value == self.minimum and not self.above)
        if not low or (self.maximum is not None and value > self.maximum):
            raise UsageError(f"{name} must be {self.range}; got {value}.")

    def _of_type(self, value: Any) -> bool:
        kind = {int: Integral, float: Real}.get(self.type, self.type)
        return isinstance(value, kind) and (self.type is bool or not isinstance(value, bool))

    @property
    def range(self) -> str:
        if self.type is bool:
            return "True or False"
        noun = "a whole number" if self.type is int else "a share" if self.share else "a number"
        low = "" if self.minimum is None else f"above {self.minimum:g}" if self.above else f"{self.minimum:g} or more"
        high = "" if self.maximum is None else f"at most {self.maximum:g}"
        return ", ".join(filter(None, (noun, " and ".join(filter(None, (low, high))))))


def option(default: object, about: str, *, type: type | None = None, **limits: Any) -> Any:  # noqa: A002
    """Define a field of Options. about: one line of help. type: needed if the default is None. limits: of `Limits`."""
    return field(default=default, metadata={"limits": Limits(about, type or default.__class__, **limits)})


@dataclass(frozen=True)
class Options:
    """A frozen dataclass whose fields are options. Raises UsageError for values out of range."""

    def __post_init__(self) -> None:
        for name, limits in self.limits().items():
            limits.check(name, getattr(self, name))

    @classmethod
    def limits(cls) -> dict[str, Limits]:
        """Limits of every option, by name."""
        return {each.name: each.metadata["limits"] for each in fields(cls) if "limits" in each.metadata}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        return {each.name: each.default for each in fields(cls) if "limits" in each.metadata}

    @classmethod
    def of(cls: type[OptionsType], values: Mapping[str, object]) -> OptionsType:
        """Create options from names and values. Raises UnknownName for an unknown name."""
        names = cls.limits()
        for name in values:
            check_name(f"option of {cls.__name__.lower()}", name, names)
        return cls(**values)

    @classmethod
    def flags(cls) -> dict[str, str]:
        """Name of each option -> its flag on the command line."""
        return {name: limits.flag or "--" + name.replace("_", "-") for name, limits in cls.limits().items()}

    def to_arguments(self) -> list[str]:
        """Command-line arguments for all values that differ from the defaults."""
        arguments: list[str] = []
        for name, flag in self.flags().items():
            value, limits = getattr(self, name), self.limits()[name]
            if value == self.defaults()[name]:
                continue
            if isinstance(value, bool):
                arguments.append(flag if value else flag.replace("--", "--no-", 1))
            else:
                arguments += [flag, f"{100 * value:.12g}%" if limits.share else str(value)]
        return arguments

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)
