"""Codec: frozen dataclasses and named tuples to JSON and back. Knows types, not what is measured.

JSON has no NaN: a number that is not defined is null in a file and NaN in Python. A field of type `float | None` is
None if there is no such number at all.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from headcount.errors import RecordError

T = TypeVar("T")
_ROW = tuple[float, ...]
_NAMES = {
    str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "an object",
}  # fmt: skip


def encode(value: object) -> Any:
    """The same as plain JSON values."""
    if hasattr(value, "to_plain"):
        return value.to_plain()
    if dataclasses.is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: encode(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def decode(kind: type[T], data: object, *, source: str, path: str = "") -> T:
    """A value of a type from plain JSON values.

    source, path: the file and the key, for errors.
    """
    return _decode(kind, data, source, path)


def _decode(kind: object, data: object, source: str, path: str) -> Any:
    if kind is Any:
        return data
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return None if data is None else _decode(inner, data, source, path)
    if origin is tuple:
        items = _checked(list, data, source, path)
        if arguments[0] in (float, _ROW) and _are_numbers(items, rows=arguments[0] == _ROW):
            return tuple(map(tuple, items)) if arguments[0] == _ROW else tuple(items)
        return tuple(_decode(arguments[0], item, source, f"{path}[{index}]") for index, item in enumerate(items))
    if origin is not None and issubclass(origin, Mapping):
        items = _checked(dict, data, source, path)
        return {key: _decode(arguments[1], item, source, f"{path}.{key}") for key, item in items.items()}
    if hasattr(kind, "from_plain"):
        return kind.from_plain(data, source=f"{source}, {path},")
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        return _decode_fields(kind, data, source, path)
    return _checked(kind, data, source, path)


def _are_numbers(items: list[Any], *, rows: bool) -> bool:
    """Whether a list, or every row in it, has finite floats only: thousands of them need no path for an error."""
    if rows:
        return all(type(row) is list and _are_numbers(row, rows=False) for row in items)
    return all(type(item) is float and math.isfinite(item) for item in items)


def _decode_fields(kind: Any, data: Any, source: str, path: str) -> Any:
    _checked(dict, data, source, path)
    hints, required = field_types(kind)
    unknown = [key for key in data if key not in hints]
    if unknown:
        raise RecordError(
            f"{source} is a damaged record: {_joined(path, unknown[0])} is unknown; expected {', '.join(hints)}."
        )
    values = {}
    for name, hint in hints.items():
        if name in data:
            values[name] = _decode(hint, data[name], source, _joined(path, name))
        elif name in required:
            raise RecordError(f"{source} is a damaged record: {_joined(path, name)} is missing.")
    return kind(**values)


@cache
def field_types(kind: Any) -> tuple[Mapping[str, Any], frozenset[str]]:
    """The fields of a dataclass or named tuple with their types, and the names of those without a default."""
    hints = get_type_hints(kind)
    if not dataclasses.is_dataclass(kind):
        return {name: hints[name] for name in kind._fields}, frozenset(kind._fields) - set(kind._field_defaults)
    fields = dataclasses.fields(kind)
    missing = dataclasses.MISSING
    required = {field.name for field in fields if field.default is missing and field.default_factory is missing}
    return {field.name: hints[field.name] for field in fields}, frozenset(required)


def _checked(kind: Any, data: Any, source: str, path: str) -> Any:
    """Data of a basic type; a whole number is a number too, and null is one that is not defined."""
    if kind is float:
        if data is None:
            return math.nan
        if type(data) in (int, float):
            return _finite(data, source, path)
    elif isinstance(data, kind) and (kind is bool or not isinstance(data, bool)):
        return data
    raise RecordError(
        f"{source} is a damaged record: {path} is of type {type(data).__name__}, expected {_NAMES[kind]}."
    )


def _finite(number: int | float, source: str, path: str) -> float:
    """JSON spells numbers that are too large for a float: 1e999, or a whole number of hundreds of digits."""
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        raise RecordError(f"{source} is a damaged record: {path} is a number too large to be a measurement.")
    return value


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
