"""`load_export` loads an export in its runtime."""

from __future__ import annotations

from pathlib import Path

from headcount.checkpoints.export_list import is_export
from headcount.checkpoints.folder import weight_files
from headcount.errors import UsageError
from headcount.exports.export import RUNTIMES
from headcount.exports.measured import Measured
from headcount.exports.runtime import Runtime, missing

_ONE_FILE = (".gguf", ".onnx")


def load_export(path: str | Path, *, threads: int = 1) -> Measured | None:
    """Load an export for timing. Return None if the path is not an export; it may be a checkpoint.

    A folder with the weights of a model is that model, also with a graph beside them: it may be of another model.
    """
    file = Path(path)
    if not file.exists():
        if file.suffix in _ONE_FILE:  # the hub has folders, no such files
            raise UsageError(f"There is no file {file}. headcount export writes such files.")
        return None
    if file.is_dir() and weight_files(file) and not is_export(file):
        return None
    for name, runtime in RUNTIMES.items():
        absent = missing(runtime.checkers)
        if not absent and (measured := _open(runtime, file, threads)) is not None:
            return measured
        if absent and file.suffix == f".{name}":
            raise UsageError(f"Running {file} needs {', '.join(absent)}: pip install headcount[{runtime.extra}].")
    if file.suffix in _ONE_FILE:
        raise UsageError(f"{file} is not an export that headcount can load.")
    return None


def _open(runtime: Runtime, file: Path, threads: int) -> Measured | None:
    """Open a file or folder; each runtime reports damaged files by its own errors."""
    try:
        return runtime.open(file, threads=threads)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"{runtime.title} does not load {file}, which may be damaged or incomplete: {error}. Export it again."
        ) from error
