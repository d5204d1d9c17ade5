"""Locks that end with the process that holds them, even if it is killed. Independent of what they protect."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from headcount.errors import FolderError, FolderInUse

try:
    import fcntl
except ImportError:  # no such locks on this system: every process may work
    fcntl = None  # type: ignore[assignment]

FOLDER_LOCK = ".headcount.lock"
CLAIM = ".claim"  # ending of the lock of a piece of work
_ATTEMPTS = 100  # to open a lock file that its last holder may be removing
_BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
_held: set[Path] = set()  # folders held by this process


@contextlib.contextmanager
def alone(path: str | Path) -> Iterator[bool]:
    """Whether this process gets the lock. One process at a time does; the lock ends with it, even if it is killed.

    The lock file exists while a process holds it, and stays if that process was killed.
    """
    if fcntl is None:
        yield True
        return
    file = Path(path)
    descriptor, locked = _open_and_lock(file)
    try:
        yield locked
    finally:
        if locked:
            _release(file, descriptor)
        else:
            os.close(descriptor)


def _open_and_lock(file: Path) -> tuple[int, bool]:
    """The descriptor of a lock file, created if missing, and whether this process now holds it."""
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        locked = _try_lock(descriptor, shared=False)
        if not locked or _is_at(descriptor, file):
            return descriptor, locked
        os.close(descriptor)  # its last holder has just removed it


@contextlib.contextmanager
def held(folder: str | Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a folder while working in it. Raises FolderInUse, which names the process, if another process holds it.

    shared: whether processes that also pass it may hold the folder together.
    The folder is created if missing, and removed if nothing was written to it.
    """
    path = Path(folder).resolve()
    if fcntl is None or path in _held:  # held already, by the command that runs this study
        yield
        return
    missing = [parent for parent in (path, *path.parents) if not parent.exists()]
    descriptor = _acquire(path, shared)
    _held.add(path)
    try:
        yield
    finally:
        _held.discard(path)
        _release(path / FOLDER_LOCK, descriptor)
        with contextlib.suppress(OSError):  # not empty: results are in it
            for parent in missing:
                parent.rmdir()


def supported() -> bool:
    """Whether this system has such locks. Without them, running processes cannot be detected."""
    return fcntl is not None


def _acquire(folder: Path, shared: bool) -> int:
    """The descriptor of the folder's lock file, locked."""
    for _ in range(_ATTEMPTS):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder / FOLDER_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:  # the last holder has just removed the folder
            continue
        except OSError as error:
            raise FolderError(
                f"Cannot write in {folder}: {os.strerror(error.errno or 0)}. Make it writable, or give another folder."
            ) from error
        if not _try_lock(descriptor, shared=shared):
            holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "another process"
            os.close(descriptor)
            raise FolderInUse(f"{folder} is in use by {holder}. Wait until it ends, stop it, or give another folder.")
        if _is_at(descriptor, folder / FOLDER_LOCK):
            with contextlib.suppress(OSError):  # the disk is full: the lock works without the name of its holder
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return descriptor
        os.close(descriptor)
    raise FolderError(f"Cannot write in {folder}: another program keeps removing it. Give another folder.")


def _release(file: Path, descriptor: int) -> None:
    """Remove the lock file if no other process holds it. A process that opened it meanwhile notices that it is gone."""
    if _try_lock(descriptor, shared=False) and _is_at(descriptor, file):
        with contextlib.suppress(OSError):
            file.unlink()
    os.close(descriptor)


def _try_lock(descriptor: int, *, shared: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _BUSY  # a file system without locks cannot exclude other processes
    return True


def _is_at(descriptor: int, file: Path) -> bool:
    """Whether an open file still has this path."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(status, os.fstat(descriptor))
