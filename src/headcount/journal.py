"""Atomic file writes, and folders of unfinished work from which a run can resume. Independent of what is written."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import glob
import itertools
import json
import math
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headcount import file_list, locks
from headcount.errors import FolderError, RecordError, UsageError
from headcount.exchange import exchange
from headcount.mounts import is_mount

try:
    import resource
except ImportError:  # no such limits on this system
    resource = None  # type: ignore[assignment]

LARGEST_JSON = 100_000_000  # bytes; 400,000 translations of 20 words are 60 million
_SCRATCH, _LOCK, _NEW, _OLD, _GONE, _SAMPLE = ".headcount-", "lock", "new", "old", "gone", ".sample"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # one half of a character beyond 16 bits, as JSON escapes it
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the last: more than `ulimit -f` allows
_LEAST_ROOM = 1 << 16  # bytes; less is a full disk: what is left of a block, or of a buffer, may still be free
_ATTEMPTS = 100  # to create a scratch folder, which another process may take for an abandoned one and remove


@contextlib.contextmanager
def reserved(folder: str | Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a folder that no other process works in. Raises before any work if the folder cannot be written.

    shared: whether processes that also pass it may work in the folder together.
    """
    path = Path(folder)
    for link in (path, *(path.iterdir() if path.is_dir() else ())):
        if link.is_symlink() and not link.exists():
            raise FolderError(f"{link} is a link to {os.readlink(link)}, which does not exist. Remove the link.")
    recover(path.resolve())
    with locks.held(path, shared=shared):
        _recover_inside(path)
        yield


def _recover_inside(folder: Path) -> None:
    """Remove what killed processes left anywhere in a folder: finished files beside it are not written again."""
    for inner, folders, _ in os.walk(folder):
        scratch = [name for name in folders if _is_scratch(Path(name))]
        folders[:] = [name for name in folders if not name.startswith(".")]
        for target in {name[1:].rpartition(_SCRATCH)[0] for name in scratch}:
            recover(Path(inner, target))


def check_place(path: Path) -> None:
    """Raise if a file or folder could not be put in its place.

    It is prepared in its parent folder, which must be writable, and then renamed, which a mount point cannot be.
    """
    parent = path.resolve().parent
    nearest = next(folder for folder in (parent, *parent.parents) if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise FolderError(f"Cannot write {path}: {nearest} is not a writable folder. Give another path.")
    if is_mount(path.resolve()):
        raise FolderError(
            f"Cannot write {path}: it is a mount point, such as a volume of a container, which cannot be replaced. "
            + (f"Give a path inside it, such as {path / 'model'}." if path.is_dir() else "Give another path.")
        )


def contents(folder: Path) -> list[Path]:
    """Files of a folder, without locks, lists and leftovers of killed processes. Empty if it does not exist."""
    if not folder.is_dir():
        return []
    return [
        path
        for path in folder.iterdir()
        if path.name not in (locks.FOLDER_LOCK, file_list.NAME) and not _is_scratch(path)
    ]


def is_being_written(path: Path) -> bool:
    """Whether a file is in a scratch folder: another process is writing it, or was killed there."""
    return any(map(_is_scratch, path.parents))


def _is_scratch(path: Path) -> bool:
    return path.name.startswith(".") and _SCRATCH in path.name


@contextlib.contextmanager
def new_file(path: str | Path, *, replaces: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """A temporary name to write a file to. On success the file is renamed; on failure nothing changes.

    replaces: for a result, whether what stands in its place is an earlier state of it. Everything else stays as
        NAME.old. None: unfinished work, in a folder that its settings have claimed, or a file that was asked for.
    """
    target = Path(path)
    with _scratch(target) as scratch:
        fresh = scratch / _NEW / target.name  # in a folder of its own: beside the lock, its name may be one of ours
        fresh.parent.mkdir()
        yield fresh
        _permit([fresh], scratch)
        with open(fresh, "rb") as file:
            os.fsync(file.fileno())
        file_list.add(target)
        with contextlib.suppress(FileNotFoundError):  # another process has just set it aside
            if replaces and os.path.lexists(target) and not same_file(target, fresh) and not replaces(target):
                set_aside(target)
        os.replace(fresh, target)


def nothing(_: Path) -> bool:
    """For a result that replaces nothing: all that stands in its place stays as NAME.old."""
    return False


def write_text(path: str | Path, text: str, *, replaces: Callable[[Path], bool] | None = None) -> Path:
    """Write a file atomically. replaces: as in `new_file`."""
    with new_file(path, replaces=replaces) as fresh:
        fresh.write_text(text, encoding="utf-8")
    return Path(path)


def write_json(path: str | Path, data: object, *, replaces: Callable[[Path], bool] | None = None) -> Path:
    """Write a JSON file atomically: indented, or without spaces if `read_json` would refuse it otherwise.

    Warns if it is too large all the same: the numbers of a long measurement are kept for other programs.
    replaces: as in `new_file`.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if _size(text) > LARGEST_JSON:
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"
    file = write_text(path, text, replaces=replaces)
    if _size(text) > LARGEST_JSON:
        warnings.warn(
            f"{file} has {_size(text) / 1e6:.0f} MB, and headcount reads JSON files of up to {LARGEST_JSON / 1e6:.0f} "
            "MB: it cannot show or compare this one. Measure on less data for that.",
            stacklevel=2,
        )
    return file


def _size(text: str) -> int:
    """Bytes of a file with this text."""
    return len(text.encode("utf-8"))


def read_json(path: str | Path) -> Any:
    """The content of a JSON file written by headcount. Raises RecordError with file and cause if it cannot be read."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            text = file.read(LARGEST_JSON).decode("utf-8") if size <= LARGEST_JSON else ""
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"Cannot read {path}: {error}.") from error
    if size > LARGEST_JSON:
        most = f"{LARGEST_JSON / 1e6:.0f} MB"
        raise RecordError(
            f"{path} has {size / 1e6:.0f} MB; headcount reads JSON files of up to {most}. Measure on less data."
        )
    return parse_json(text, source=str(path))


def parse_json(text: str, *, source: str) -> Any:
    """The content of JSON text. source: name of the text in error messages."""
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
        if _SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode()  # raises if half of a surrogate pair is missing
        return content
    except json.JSONDecodeError as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:  # a number of thousands of digits, or none; half of a surrogate pair
        reason = str(error).partition(";")[0]
    raise RecordError(f"{source} is not JSON ({reason}); expected a file written by headcount.")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


@contextlib.contextmanager
def new_folder(path: str | Path, *, carry_over: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Fill a temporary folder. On success it replaces `path`; on failure nothing changes.

    Files of an older folder at `path` are kept if `carry_over` accepts them; if the new folder has another file of the
    same name, as NAME.old.
    """
    target = Path(path)
    with _scratch(target) as scratch:
        fresh = scratch / _NEW
        fresh.mkdir()
        yield fresh
        _permit(fresh.rglob("*"), scratch)
        carried = [old for old in contents(target) if carry_over is not None and carry_over(old)]
        for old in sorted(carried, key=lambda path: (fresh / path.name).exists()):  # those that keep their names first
            if not same_file(old, fresh / old.name):
                _copy(old, free_name(fresh / old.name))
        for path in filter(Path.is_file, fresh.rglob("*")):
            file_list.add(target / path.relative_to(fresh))
        _put_in_place(fresh, target, scratch / _OLD)


def _permit(paths: Iterable[Path], scratch: Path) -> None:
    """Give files the permissions of the umask: safetensors writes files that only their owner may read."""
    sample = scratch / _SAMPLE
    sample.touch()
    allowed = sample.stat().st_mode
    for path in paths:
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode | allowed)


def _copy(old: Path, new: Path) -> None:
    """Links stay links."""
    if old.is_dir() and not old.is_symlink():
        shutil.copytree(old, new, symlinks=True)
    else:
        shutil.copy2(old, new, follow_symlinks=False)


def same_file(old: Path, new: Path) -> bool:
    """Whether two files have the same content."""
    return old.is_file() and new.is_file() and filecmp.cmp(old, new, shallow=False)


def same(old: Path, new: Path) -> bool:
    """Whether two files have the same content, or two folders the same files; links are followed."""
    if not (old.is_dir() and new.is_dir()):
        return same_file(old, new)
    names = [{path.name for path in folder.iterdir()} for folder in (old, new)]
    return names[0] == names[1] and all(same(old / name, new / name) for name in names[0])


def set_aside(path: Path) -> None:
    """Rename what stands at a path to NAME.old, NAME.old2 and so on, if anything does."""
    while (aside := free_name(path)) != path:
        if path.is_dir():
            path.rename(aside)
        elif not _moved(path, aside):
            continue
        warnings.warn(
            f"{path} is now {aside}: it was yours, or that of an earlier run with other settings or data.",
            stacklevel=2,
        )
        return


def _moved(file: Path, new: Path) -> bool:
    """Whether a file could be renamed. The name is taken first: another process would replace the file under it."""
    with contextlib.suppress(FileExistsError):
        new.touch(exist_ok=False)
        try:
            file.replace(new)
            return True
        except FileNotFoundError:  # another process was faster
            new.unlink()
    return False


def free_name(path: Path) -> Path:
    """The path if nothing is there, else NAME.old, NAME.old2 and so on."""
    endings = itertools.chain(["", ".old"], (f".old{number}" for number in itertools.count(2)))
    paths = (path.with_name(f"{path.name}{ending}") for ending in endings)
    return next(free for free in paths if not os.path.lexists(free))


def _put_in_place(fresh: Path, target: Path, old: Path) -> None:
    """Move `fresh` to `target`: atomically, or by moving the old target to `old`, from where it can be restored."""
    if not target.exists():
        os.rename(fresh, target)
    elif not exchange(fresh, target):
        os.rename(target, old)
        os.rename(fresh, target)


@contextlib.contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """A locked, hidden folder beside a target to prepare it in. Removes leftovers of killed processes."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        recover(target)
        with contextlib.ExitStack() as stack:
            scratch = _locked_scratch(target, stack)
            stack.callback(_clear, scratch, target)
            with _explained_shortage(scratch):
                yield scratch
    except Exception as error:
        if is_disk_full(error):
            raise FolderError(_no_room(target, error)) from error
        raise


@contextlib.contextmanager
def _explained_shortage(scratch: Path) -> Iterator[None]:
    """An error of a library that does not say why it could not write gets the reason that the disk shows.

    numpy says "4096 requested and 1931 written", streams of C++ "iostream error".
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        number = None if getattr(error, "errno", None) else _shortage(scratch)
        if number is None:
            raise
        raise OSError(number, os.strerror(number)) from error


def _shortage(folder: Path) -> int | None:
    """What keeps files in a folder from growing: the number of the error that writing more would be; None: nothing."""
    largest = max((path.stat().st_size for path in folder.rglob("*") if path.is_file()), default=0)
    if largest >= _file_size_limit():
        return errno.EFBIG
    return errno.ENOSPC if shutil.disk_usage(folder).free < _LEAST_ROOM else None


def _file_size_limit() -> float:
    """Bytes that `ulimit -f` allows a file."""
    soft = resource.getrlimit(resource.RLIMIT_FSIZE)[0] if resource else math.inf
    return math.inf if resource and soft == resource.RLIM_INFINITY else soft


def _locked_scratch(target: Path, stack: contextlib.ExitStack) -> Path:
    """A new scratch folder with a lock in it. Before it is locked, another process may take it for an abandoned one."""
    for _ in range(_ATTEMPTS):
        scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}{_SCRATCH}"))
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            if stack.enter_context(locks.alone(scratch / _LOCK)):
                return scratch
    raise FolderError(
        f"Cannot write in {target.parent}: another program keeps removing files there. Give another folder."
    )


def recover(target: Path) -> None:
    """Remove leftovers of killed processes beside a target, and restore a folder that one of them had moved away."""
    if not locks.supported():
        return
    for scratch in target.parent.glob(f".{glob.escape(target.name)}{_SCRATCH}*"):
        # errors: the folder is of another user, or was removed by another process
        with contextlib.suppress(OSError), locks.alone(scratch / _LOCK) as abandoned:
            if abandoned:
                _clear(scratch, target)


def _clear(scratch: Path, target: Path) -> None:
    """Remove a scratch folder. The old target in it is restored if there is no new one."""
    old = scratch / _OLD
    if old.exists() and not contents(target):
        os.rename(old, target)
    shutil.rmtree(scratch, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically: half a folder could be taken for unfinished work."""
    if folder.is_dir():
        with _scratch(folder) as scratch:
            os.rename(folder, scratch / _GONE)


def remove_listed(folder: Path) -> None:
    """Remove the files of unfinished work, and the folder if nothing else is in it: other files are the user's."""
    _recover_inside(folder)
    names = file_list.names(folder)
    files = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    ours = [path for path in files if str(path.relative_to(folder)) in names or _is_claim(path)]
    if len(ours) == len(files):
        remove_folder(folder)
        return
    for path in sorted(ours, key=lambda path: path.name == file_list.NAME):  # last: the next run removes what is on it
        path.unlink(missing_ok=True)


def _is_claim(path: Path) -> bool:
    """Whether a file is the lock of a piece of work, which is empty."""
    return path.suffix == locks.CLAIM and not path.stat().st_size


def is_disk_full(error: BaseException) -> bool:
    """Whether an error means a full disk. Errors of safetensors have no error number, so their text is searched."""
    return getattr(error, "errno", None) in _FULL or any(os.strerror(number) in str(error) for number in _FULL)


def _no_room(target: Path, error: Exception) -> str:
    if getattr(error, "errno", None) == errno.EFBIG or os.strerror(errno.EFBIG) in str(error):
        return (
            f"{target} was not written: it would be larger than a file may be here (ulimit -f, or the file system). "
            "Raise the limit and run the same command again."
        )
    usage = shutil.disk_usage(target.parent)
    return (
        f"The disk is full: {target} was not written. {usage.free / 1e6:.0f} MB of {usage.total / 1e6:.0f} MB are free "
        "there. Make room and run the same command again."
    )


def claim(folder: Path, note: str, work: Mapping[str, object]) -> bool:
    """Start work in a folder by writing its settings, or check that it was started with the same settings.

    note: name of the settings file in the folder. Returns whether the work is new. Raises if the settings differ.
    """
    file, ours = folder / note, json.loads(json.dumps(dict(work)))
    if not file.is_file():
        write_json(file, ours)
        return True
    theirs = read_json(file)
    if not isinstance(theirs, dict):
        raise RecordError(f"{file} does not contain the settings that {folder} was started with. Give another folder.")
    differ = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    if differ:
        differences = "; ".join(f"{name}: {theirs.get(name)} there, {ours.get(name)} now" for name in differ)
        raise UsageError(f"{folder} was begun with other settings ({differences}). Use the same, or another folder.")
    return False


class Shelf:
    """Arrays of unfinished work in a folder, to resume from after an interruption. One folder serves one task."""

    def __init__(self, folder: Path, work: Mapping[str, object]) -> None:
        """work: the settings that decide the result. Raises if the folder has arrays of other settings."""
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
