"""Files of which a reader never sees half, and unfinished work that can be gone on with. Knows not what is written."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headcount.errors import UsageError


@contextlib.contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """A temporary name beside a file's place to write to; on success it is renamed, on failure nothing has changed."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    try:
        yield Path(name)
        with open(name, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp makes private files; a result is for everybody
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def write_text(path: str | Path, text: str) -> Path:
    """Write a file: all of it or nothing."""
    with new_file(path) as fresh:
        fresh.write_text(text, encoding="utf-8")
    return Path(path)


def write_json(path: str | Path, data: Any) -> Path:
    return write_text(path, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | Path) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


@contextlib.contextmanager
def new_folder(path: str | Path, *, carry_over: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Fill a temporary folder; on success it takes the place of `path`, on failure nothing has changed.

    An older folder at `path` is replaced; its files that the new one lacks and `carry_over` accepts come along.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        yield fresh
        os.chmod(fresh, 0o755)
        if not target.exists():
            os.rename(fresh, target)
            return
        for old in target.iterdir():
            if carry_over is not None and carry_over(old) and not (fresh / old.name).exists():
                (shutil.copytree if old.is_dir() else shutil.copy2)(old, fresh / old.name)
        _swap(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _swap(fresh: Path, target: Path) -> None:
    """Put `fresh` where `target` is; the old folder is deleted only when the new one stands."""
    grave = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.old."))
    old = grave / target.name
    os.rename(target, old)
    try:
        os.rename(fresh, target)
    except OSError:
        os.rename(old, target)
        raise
    finally:
        shutil.rmtree(grave, ignore_errors=True)


def claim(place: Path, note: str, work: Mapping[str, Any]) -> bool:
    """Begin work in a folder by noting what decides its result, or see that it was begun for the same.

    note: name of the file in the folder. Work of other settings is an error. True where it is new.
    """
    file, ours = place / note, json.loads(json.dumps(dict(work)))
    if not file.is_file():
        write_json(file, ours)
        return True
    theirs = read_json(file)
    differ = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    if differ:
        said = "; ".join(f"{name}: {theirs.get(name)} there, {ours.get(name)} now" for name in differ)
        raise UsageError(f"{place} was begun with other settings ({said}). Use the same, or another folder.")
    return False


@contextlib.contextmanager
def alone(path: str | Path) -> Iterator[bool]:
    """Whether this process may work on something: one at a time may, and its claim ends with it, even if killed."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system: whoever asks may
        yield True
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


class Shelf:
    """Arrays of unfinished work in a folder, to go on with after an interruption. It belongs to one work alone."""

    def __init__(self, folder: Path, work: Mapping[str, Any]) -> None:
        """work: what decides the result; a shelf of other work is an error."""
        self.folder = folder
        claim(folder, "work.json", work)

    def get(self, name: str) -> dict[str, np.ndarray] | None:
        from safetensors.numpy import load_file

        file = self.folder / f"{name}.safetensors"
        return load_file(file) if file.is_file() else None

    def put(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        from safetensors.numpy import save_file

        with new_file(self.folder / f"{name}.safetensors") as fresh:
            save_file({key: np.asarray(value, order="C") for key, value in arrays.items()}, fresh)

    def clear(self) -> None:
        """The work is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)
