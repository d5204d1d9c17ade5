"""Names that lead to members: one file of a folder is one member. Knows nothing of what the members do.

A registry over the package `headcount.sites.families` with the attribute `FAMILY` finds `bert` in
`families/bert.py`, imports that file on first use and returns its `FAMILY`. So adding a member is adding
a file, and listing the names imports nothing heavy. `-` in a name is `_` in the file.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Generic, TypeVar

from headcount.errors import UnknownName, UsageError

Member = TypeVar("Member")


class Registry(Generic[Member]):
    """Members by name: those found as files of a package, and those added at run time."""

    def __init__(self, what: str, package: str, attribute: str, *, besides: tuple[str, ...] = ()) -> None:
        """besides: files of the package that are no members."""
        self.what = what
        self._besides = besides
        self._package = package
        self._attribute = attribute
        self._added: dict[str, Member] = {}

    def _files(self) -> dict[str, str]:
        package = importlib.import_module(self._package)
        modules = (info.name for info in pkgutil.iter_modules(package.__path__))
        return {name.replace("_", "-"): name for name in modules if name not in self._besides}

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*self._files(), *self._added}))

    def add(self, name: str, member: Member) -> None:
        """Register a member of one's own for this process; a name that is taken is an error."""
        if name in self:
            raise UsageError(f"The {self.what} {name!r} exists already; choose another name.")
        self._added[name] = member

    def __getitem__(self, name: str) -> Member:
        if name in self._added:
            return self._added[name]
        files = self._files()
        key = name.replace("_", "-")
        if key not in files:
            raise UnknownName(self.what, name, self.names())
        module = importlib.import_module(f"{self._package}.{files[key]}")
        member: Member = getattr(module, self._attribute)
        return member

    def __contains__(self, name: str) -> bool:
        return name in self._added or name.replace("_", "-") in self._files()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def items(self) -> Iterator[tuple[str, Member]]:
        return ((name, self[name]) for name in self.names())
