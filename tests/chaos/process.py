"""Run a command in a forked process with a fault, such as a signal or a file size limit."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")
_EXCHANGE = "ctypes.dlopen"  # precedes the exchange of two names, for which Python has no audit event
_HELD_BACK = (signal.SIGINT, signal.SIGTERM)  # blocked until the forked process runs the command
_INTERRUPTED = 130  # 128 + SIGINT, the exit status in shells
POLL = 0.002  # seconds


@dataclass(frozen=True)
class Interruption:
    """A signal that is sent after a number of seconds, or before the n-th disk change."""

    signal: signal.Signals
    seconds: float | None = None
    change: int | None = None

    def __str__(self) -> str:
        moment = f"change {self.change}" if self.change is not None else f"{self.seconds:.2f} s"
        return f"{self.signal.name} at {moment}"


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    status: int  # as in os.waitstatus_to_exitcode: negative for a signal
    seconds: float
    output: str  # stdout and stderr
    orphans: tuple[int, ...] = ()
    modules: tuple[str, ...] = field(default=(), repr=False)  # imported modules, if `counted` is set
    changes: int = 0  # number of disk changes, if `counted` is set

    @property
    def refusal(self) -> str:
        """The one-line error message; empty if there is none, or more than one."""
        lines = [line for line in self.output.splitlines() if line.startswith("Error: ")]
        clear = len(lines) == 1 and "Traceback" not in self.output and "Unexpected " not in lines[0]
        return lines[0] if self.status > 0 and clear else ""


@dataclass(frozen=True)
class Program:
    """The program under test: a click command, and `prepare`, which runs first in the same process."""

    main: Callable[..., Any]
    prepare: Callable[[Path], object] = lambda _: None  # called with the cache folder of the run


def cache_of(folder: Path) -> Path:
    """Return the cache folder, which is outside the tested folder because other libraries write the caches."""
    return folder.with_name(f"{folder.name}.cache")


class Run:
    """A forked process that runs a command in a folder."""

    def __init__(
        self,
        program: Program,
        arguments: list[str],
        folder: Path,
        *,
        interruption: Interruption | None = None,
        file_limit: int | None = None,
        counted: Path | None = None,
    ) -> None:
        """Start the process. `counted` is a file for its imported modules and its number of disk changes."""
        self._log = folder.parent / f"{folder.name}.{time.monotonic_ns()}.log"
        self._log.touch()
        self._interruption, self._counted = interruption, counted
        self._begin = time.monotonic()
        signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
        self.pid = os.fork()
        if self.pid == 0:
            _become(program, arguments, folder, self._log, interruption, file_limit, counted)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)

    def wait(self, longest: float) -> Outcome:
        """Wait for the process; after `longest` seconds it counts as hanging."""
        at = self._interruption.seconds if self._interruption else None
        status = None
        while status is None:
            pid, raw = os.waitpid(self.pid, os.WNOHANG)
            elapsed = time.monotonic() - self._begin
            if pid:
                status = os.waitstatus_to_exitcode(raw)
            elif at is not None and elapsed >= at and self._interruption:
                os.kill(self.pid, self._interruption.signal)
                at = None
            elif elapsed > longest:
                os.kill(self.pid, signal.SIGABRT)  # faulthandler prints where it hangs
                _, raw = os.waitpid(self.pid, 0)
                status = os.waitstatus_to_exitcode(raw)
            else:
                time.sleep(POLL)
        seconds = time.monotonic() - self._begin
        output = self._log.read_text(encoding="utf-8", errors="replace")
        self._log.unlink()
        orphans = tuple(_session(self.pid))
        for orphan in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
        modules: tuple[str, ...] = ()
        changes = 0
        if self._counted is not None and self._counted.is_file():
            number, *modules_read = self._counted.read_text().splitlines()
            changes, modules = int(number), tuple(modules_read)
            self._counted.unlink()
        return Outcome(status, seconds, output, orphans, modules, changes)


def _session(leader: int) -> Iterator[int]:
    """Return the processes that a run has left running; each run is a separate session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state != "Z":
                    yield int(entry.name)


def _become(
    program: Program,
    arguments: list[str],
    folder: Path,
    log: Path,
    interruption: Interruption | None,
    file_limit: int | None,
    counted: Path | None,
) -> None:
    """Run the command in the forked process; never returns."""
    status = 1
    try:
        os.setsid()
        os.chdir(folder)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        faulthandler.enable(descriptor)
        sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))  # noqa: SIM115
        os.environ["TMPDIR"], tempfile.tempdir = str(folder / "tmp"), None
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
        program.prepare(cache_of(folder))
        before = set(sys.modules)
        changes = _count_changes(folder, interruption)
        begun = False
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
            begun = True
            program.main(arguments, prog_name="headcount")
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except KeyboardInterrupt as interrupt:
            if begun and interrupt.__traceback__ and interrupt.__traceback__.tb_next:
                raise
            status = _INTERRUPTED  # just before or after the command, which cannot catch it
        if counted is not None:
            number = changes[0]
            counted.write_text("\n".join([str(number), *(name for name in list(sys.modules) if name not in before)]))
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:  # noqa: BLE001 - the fork must not continue as its parent
        import traceback

        traceback.print_exception(error)
        sys.stderr.flush()
    finally:
        os._exit(status)


def _count_changes(folder: Path, interruption: Interruption | None) -> list[int]:
    """Count the disk changes below a folder, and send a signal to this process before one of them."""
    count, inside = [0], str(folder) + os.sep

    def watch(event: str, details: tuple[Any, ...]) -> None:
        if not _is_change(event, details, inside):
            return
        count[0] += 1
        if interruption and count[0] == interruption.change:
            os.kill(os.getpid(), interruption.signal)

    sys.addaudithook(watch)
    return count


def _is_change(event: str, details: tuple[Any, ...], inside: str) -> bool:
    if event == "open":
        path, _, flags = details
        if not flags & _WRITES or isinstance(path, int):
            return False
    elif event == _EXCHANGE:
        return details[0] is None
    elif event in _CHANGES:
        path = details[0]
    else:
        return False
    name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    return bool(name) and (not os.path.isabs(name) or name.startswith(inside))


def limit_mount(folder: Path, options: str, *, again: bool = False) -> bool:
    """Mount or remount an in-memory file system of limited size at a folder; return False if this is not allowed."""
    mount = ctypes.CDLL(None, use_errno=True).mount
    flags = (32 if again else 0) | (1 if "ro" in options.split(",") else 0)  # MS_REMOUNT, MS_RDONLY
    data = ",".join(option for option in options.split(",") if option not in ("ro", "rw"))
    return mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, data.encode()) == 0


def can_mount(folder: Path) -> bool:
    """Return whether this process may mount file systems, which usually requires root."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = limit_mount(folder, "size=65536")
    if mounted:
        unmount(folder)
    return mounted


def unmount(folder: Path) -> None:
    ctypes.CDLL(None, use_errno=True).umount2(os.fsencode(folder), 2)  # MNT_DETACH
