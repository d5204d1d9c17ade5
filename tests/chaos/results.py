"""Hash the time-independent contents of a folder, and find incomplete and temporary files.

Time-dependent are the time in the signature of a record, every field named `seconds` (including logs and the metadata
of training states), the record of `bench`, and figures of these values.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

CLOCK = ("time", "seconds", "seconds_by_way")
_LEFTOVER = re.compile(r"\.headcount-|\.headcount\.lock$|\.claim$|^tmp|^cache-.*\.arrow$")
_DRAWN = ("tradeoff-time", "speed", "compensation")  # figures of time-dependent values
_LOG = "metrics.jsonl"  # written line by line; the next run truncates it to its saved state


def contents(folder: Path, *, clock: bool) -> dict[str, str]:
    """Return a hash of each file below a folder. `clock` says whether pages show time-dependent values."""
    entries = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            entries[name] = f"link to {path.readlink()}"
        elif path.is_file():
            entries[name] = "there" if _shows_clock(path, clock) else _digest(path)
        elif not any(path.iterdir()):
            entries[name] = "empty folder"
    return entries


def _shows_clock(path: Path, clock: bool) -> bool:
    return clock if path.suffix == ".html" else path.stem in _DRAWN and path.suffix in (".svg", ".png", ".pdf", ".csv")


def _digest(path: Path) -> str:
    if _fault(path):
        data = path.read_bytes()
    elif path.suffix == ".json":
        data = json.dumps(_timeless(json.loads(path.read_text(encoding="utf-8")))).encode()
    elif path.suffix == ".jsonl":
        data = json.dumps([_timeless(json.loads(line)) for line in path.read_text().splitlines()]).encode()
    elif path.suffix == ".html":
        data = _timeless_page(path.read_text(encoding="utf-8")).encode()
    elif path.name == "state.safetensors":
        data = b"".join(_state(path))
    else:
        data = path.read_bytes()
    return hashlib.sha256(data).hexdigest()[:16]


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("study") == "bench":
            value = {**value, "parts": sorted(value["parts"])}
        return {key: _timeless(entry) for key, entry in value.items() if key not in CLOCK}
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


def _timeless_page(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00|\d{4}-\d\d-\d\d", "", text)


def _state(path: Path) -> Iterator[bytes]:
    with safe_open(path, framework="np") as file:
        yield json.dumps(_timeless(json.loads((file.metadata() or {}).get("progress", "{}")))).encode()
        for name in sorted(file.keys()):
            yield name.encode() + file.get_tensor(name).tobytes()


def broken(folder: Path) -> Iterator[str]:
    """Return incomplete files that have their final names."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(_LEFTOVER.search(part) for part in path.relative_to(folder).parts):
            reason = _fault(path)
            if reason:
                yield f"{path.relative_to(folder)} is not whole: {reason}"


def _fault(path: Path) -> str:
    try:
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".jsonl":
            lines = path.read_text(encoding="utf-8").splitlines()
            for line in lines[:-1] if path.name == _LOG else lines:
                json.loads(line)
        elif path.suffix == ".safetensors":
            with safe_open(path, framework="np") as file:
                file.keys()
        elif path.suffix in (".html", ".svg"):
            end = f"</{path.suffix[1:]}>"
            return "" if path.read_text(encoding="utf-8").rstrip().endswith(end) else f"it does not end in {end}"
        elif not path.stat().st_size:
            return "it is empty"
    except (ValueError, SafetensorError, OSError) as error:
        return str(error)[:200]
    return ""


def leftovers(folder: Path) -> list[str]:
    """Return temporary files and locks that a run should have removed."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if _LEFTOVER.search(path.name)
        and not any(_LEFTOVER.search(part) for part in path.relative_to(folder).parts[:-1])
    ]


def differences(expected: dict[str, str], actual: dict[str, str]) -> list[str]:
    return [
        f"{name}: {'missing' if name not in actual else 'not expected' if name not in expected else 'differs'}"
        for name in sorted({*expected, *actual})
        if expected.get(name) != actual.get(name)
    ]
