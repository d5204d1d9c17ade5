"""`load_export` loads an export in its runtime."""

from __future__ import annotations

from pathlib import Path

from headcount.errors import UsageError
from headcount.exports.export import RUNTIMES
from headcount.exports.measured import Measured
from headcount.exports.runtime import missing

_ONE_FILE = (".gguf", ".onnx")


def load_export(path: str | Path, *, threads: int = 1) -> Measured | None:
    """Load an export for timing. Return None if the path is not an export; it may be a checkpoint."""
    file = Path(path)
    if not file.exists():
        return None
    for name, runtime in RUNTIMES.items():
        absent = missing(runtime.checkers)
        if not absent and (measured := runtime.open(file, threads=threads)) is not None:
            return measured
        if absent and file.suffix == f".{name}":
            raise UsageError(f"Running {file} needs {', '.join(absent)}: pip install headcount[{runtime.extra}].")
    if file.suffix in _ONE_FILE:
        raise UsageError(f"{file} is not an export that headcount can load.")
    return None
