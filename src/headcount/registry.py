"""Registries of named members: each file of a folder is one member. Independent of what the members do.

A registry over the package `headcount.sites.families` with the attribute `FAMILY` finds `bert` in
`families/bert.py`, imports that file on first use and returns its `FAMILY`. To add a member, add a
file. Listing the names imports nothing heavy. `-` in a name is `_` in the file.

An installed package adds members by entry points of the group `headcount.families`, `headcount.scores`,
`headcount.exports` and so on, after the folder's name; they are imported on first use too.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from headcount.errors import UnknownName, UsageError, check_type

Member = TypeVar("Member")


@cache
def plug_ins(group: str) -> dict[str, EntryPoint]:
    """Members that installed packages add to a group, by name."""
    return {entry.name.replace("_", "-"): entry for entry in entry_points(group=group)}


class Registry(Generic[Member]):
    """Members by name: files of a package, entry points of installed packages, and those added at run time."""

    def __init__(self, what: str, package: str, attribute: str) -> None:
        """Members are the files of the package that define the attribute at the start of a line."""
        self.what = what
        self._package = package
        self._attribute = attribute
        self.group = f"headcount.{package.rpartition('.')[2].removeprefix('head_')}"  # group of entry points
        self._added: dict[str, Member] = {}

    @cached_property
    def _files(self) -> dict[str, str]:
        """Names of the members and of their modules. The folder is read once, on first use."""
        package = importlib.import_module(self._package)
        modules = [info.name for info in pkgutil.iter_modules(package.__path__) if self._defines(package, info)]
        return {name.replace("_", "-"): name for name in modules}

    def _defines(self, package: ModuleType, info: pkgutil.ModuleInfo) -> bool:
        """Whether a file defines the attribute. The file is searched, not imported."""
        folder = Path(package.__path__[0])
        file = folder / info.name / "__init__.py" if info.ispkg else folder / f"{info.name}.py"
        return re.search(rf"^(def )?{self._attribute}\b", file.read_text(encoding="utf-8"), re.MULTILINE) is not None

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*self._files, *plug_ins(self.group), *self._added}))

    def add(self, name: str, member: Member) -> None:
        """Register a member for this process. Raises UsageError if the name exists."""
        if name in self:
            raise UsageError(f"The {self.what} {name!r} exists already; choose another name.")
        self._added[name] = member

    def __getitem__(self, name: str) -> Member:
        check_type(f"The name of a {self.what}", name, str, "text")
        if name in self._added:
            return self._added[name]
        files = self._files
        key = name.replace("_", "-")
        if key not in files and key in plug_ins(self.group):
            return self._plugged_in(plug_ins(self.group)[key])
        if key not in files:
            raise UnknownName(self.what, name, self.names())
        module = importlib.import_module(f"{self._package}.{files[key]}")
        return getattr(module, self._attribute)

    def _plugged_in(self, entry: EntryPoint) -> Member:
        try:
            return entry.load()
        except (ImportError, AttributeError) as error:
            package = entry.dist.name if entry.dist else "an installed package"
            reason = f"The {self.what} {entry.name!r} of {package} cannot be loaded ({error})."
            raise UsageError(f"{reason} Update or uninstall {package}.") from error

    def __contains__(self, name: object) -> bool:
        names = {*self._files, *plug_ins(self.group)}
        return name in self._added or (isinstance(name, str) and name.replace("_", "-") in names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def items(self) -> Iterator[tuple[str, Member]]:
        return ((name, self[name]) for name in self.names())
