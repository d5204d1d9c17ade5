"""Schema: docs/records.md, generated from the dataclasses of results; `python -m headcount.record.schema` prints it."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from headcount.record.codec import field_types
from headcount.record.record import SCHEMA, Record, Signature, results

_FIELD = re.compile(r"^    (\w+): [^#\n]*(?:#\s*(.*))?$", re.MULTILINE)
_WORDS: Mapping[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "anything"}
_HEAD = f"""# Records

Every measuring command writes `DIR/record.json`. This page is written by `python -m headcount.record.schema` from the
classes in `src/headcount/record/results/`; a test compares them.

A record is an object with

| key | type | |
|---|---|---|
| `schema` | whole number | {SCHEMA}; of this table |
| `study` | text | the name of the result, a heading below |
| `version` | whole number | of the result; a record of another version is refused |
| `signature` | [Signature](#signature) | where the numbers come from |
| `parts` | object | the result |

A `number` may be null: it is not defined then (NaN in Python). `or null` marks what may be missing altogether. Heads
are written `kind.layer.index`, sites `kind.layer`.
"""


def page() -> str:
    """The whole page as Markdown."""
    sections = [_HEAD]
    described: set[Any] = set()
    for name, kind in results.items():
        sections += _sections(f"{name} (version {kind.VERSION})", kind, described)
    sections += _sections("Signature", Signature, described)
    return "\n".join(sections)


def _sections(title: str, kind: object, described: set[object], level: str = "##") -> Iterator[str]:
    """The table of a class, and of the classes of its fields that have no section yet."""
    described.add(kind)
    hints, required = field_types(kind)
    comments = _comments(kind)
    rows = [
        f"| `{name}` | {_spelled(hint)}{'' if name in required else ', optional'} | {comments.get(name, '')} |"
        for name, hint in hints.items()
    ]
    about = inspect.cleandoc(kind.__doc__ or "").partition("\n\nAttributes:")[0]  # the table has the fields
    yield "\n".join([f"{level} {title}", "", about, "", "| key | type | |", "|---|---|---|", *rows, ""])
    for hint in hints.values():
        for inner in _classes(hint):
            if inner not in described:
                yield from _sections(inner.__name__, inner, described, "###")


def _spelled(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return f"{_spelled(inner)} or null"
    if origin is tuple:
        return f"list of {_spelled(arguments[0])}"
    if origin is not None:
        return f"object of {_spelled(arguments[1])}"
    if hint is Record:
        return "record"
    return _WORDS.get(hint) or f"[{hint.__name__}](#{hint.__name__.lower()})"


def _classes(hint: object) -> Iterator[Any]:
    for argument in get_args(hint):
        yield from _classes(argument)
    if hint is not Record and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
        yield hint


def _comments(kind: Any) -> dict[str, str]:
    """The comment after each field, including inherited fields."""
    comments: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("headcount."):
            comments |= {name: comment for name, comment in _FIELD.findall(inspect.getsource(base)) if comment}
    return comments


if __name__ == "__main__":
    sys.stdout.write(page())
