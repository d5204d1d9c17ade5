"""Records whose every text is an attack on the page, made from the schema: new fields are covered by themselves."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from headcount.record import Record, Signature
from headcount.record.codec import encode, field_types
from headcount.record.record import SCHEMA, results

# Markup that would leave an element or run a script where text is not escaped: in text, attributes, scripts and styles.
ATTACK = (
    "\"'><i data-attack></i></script></style></title><script>window.attacked = 1</script>"
    "<img src=x onerror='window.attacked = 2'>&lt;i data-attack&gt;<a href='javascript:window.attacked = 3'>${title}%s"
)
_STRUCTURAL = re.compile(
    r"[a-z]+(\.\d+){0,2}|[-+]?\d+(\.\d+)?|(\d\S* )*\d\S*"
)  # names of heads, sites and kinds; numbers


def hostile(record: Record, *, spare_names: bool) -> Record:
    """The same record with an attack in every text and every key, and in fields that it left out.

    spare_names: words, numbers and names of heads stay as they are where others refer to them, so that more of the
    record can be shown.
    """

    def attacked(text: str) -> str:
        return text if spare_names and _STRUCTURAL.fullmatch(text) else text + ATTACK

    signature = _attacked(Signature, encode(record.signature), attacked)
    parts = _attacked(type(record.parts), encode(record.parts), attacked)
    plain = {"schema": SCHEMA, "study": record.study, "version": record.parts.VERSION}
    return Record.from_plain({**plain, "signature": signature, "parts": parts})


def _attacked(hint: Any, data: Any, attacked: Any) -> Any:
    """Plain JSON of a type with attacks; data: what is there already, None for nothing."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _attacked(inner, data, attacked)
    if hint in (str, Any):
        return attacked(data if isinstance(data, str) else "text of it")
    if hint in (int, float, bool):
        return {int: 1, float: 0.5, bool: True}[hint] if data is None and hint is not float else data
    if origin is tuple:
        return [_attacked(arguments[0], item, attacked) for item in data or [None]]
    if origin is not None and issubclass(origin, Mapping):
        return {attacked(key): _attacked(arguments[1], item, attacked) for key, item in (data or {"x y": None}).items()}
    if hint is Record:
        inside = Record.from_plain(data)
        return {**data, "parts": _attacked(results[inside.study], data["parts"], attacked)}
    if dataclasses.is_dataclass(hint) or hasattr(hint, "_fields"):
        hints, _ = field_types(hint)
        return {name: _attacked(field, (data or {}).get(name), attacked) for name, field in hints.items()}
    raise TypeError(f"records have no fields of type {hint}")
