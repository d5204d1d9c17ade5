"""is_earlier: whether the record in a file is an earlier state of another one, by which it may be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount import journal
from headcount.errors import RecordError

_SETTINGS = ("signature", "settings")  # which are the same, numbers and all
_COMPUTED = ("time", "versions", "ledger", "missing", "elsewhere")  # anew from the rest, whenever a record is written


def is_earlier(file: Path, record: Mapping[str, Any]) -> bool:
    """Whether a file has a record of the same settings, data and weights, with the same parts or fewer.

    Only the numbers may differ, as they do if times are measured again. record: the new one, as its JSON holds it.
    """
    try:
        older = journal.read_json(file)
    except RecordError:  # not of headcount, or damaged
        return False
    return isinstance(older, dict) and "signature" in older and _within(older, record)


def _within(older: Any, newer: Any) -> bool:
    """Whether the newer value has all that the older one has, but for numbers that are not whole."""
    if older is None or isinstance(older, float):
        return True
    if isinstance(older, dict) and isinstance(newer, dict):
        names = [name for name in older if name not in _COMPUTED]
        return all(name in newer and _alike(name, older[name], newer[name]) for name in names)
    if isinstance(older, list) and isinstance(newer, list):
        return len(older) == len(newer) and all(map(_within, older, newer))
    return bool(older == newer)


def _alike(name: str, older: Any, newer: Any) -> bool:
    return _settings(older) == _settings(newer) if name in _SETTINGS else _within(older, newer)


def _settings(plain: Any) -> Any:
    """A signature without its time and versions; other settings as they are."""
    if not isinstance(plain, dict):
        return plain
    return {name: value for name, value in plain.items() if name not in _COMPUTED}
