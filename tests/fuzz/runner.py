"""Cases: one mutated input each, made from the reader's name and a number, tried within bounds of time and memory."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.mutations import mutate
from fuzz.readers import READERS, Files, Reader, agrees
from fuzz.references import Refused
from headcount.errors import HeadcountError

SECONDS = 3.0  # of CPU for a case, and as many again for each megabyte
LONGEST_MESSAGE = 2000  # characters


class TooSlow(BaseException):
    """Not an Exception: no reader can catch it."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case: `failure` is empty where it is a confirmed result or a clear error."""

    reader: str
    number: int
    result: str  # "read", "refused" or "failed"
    seconds: float
    failure: str = ""


def files_of(reader: str, number: int) -> Files:
    """The input of a case; the same for the same number."""
    draw = random.Random(f"{reader} {number}")
    files = dict(draw.choice(READERS[reader].seeds()))
    for name in draw.sample(sorted(files), k=1 if draw.random() < 0.9 else len(files)):
        files[name] = mutate(files[name], draw)
    return files


def tried(reader: str, number: int, folder: Path) -> Outcome:
    return tried_files(reader, files_of(reader, number), folder, number)


def tried_files(reader: str, files: Files, folder: Path, number: int = -1) -> Outcome:
    """Read files in a folder of their own, and compare what comes of it with the reference."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    start = time.process_time()
    try:
        with _bounded(SECONDS * (1 + sum(map(len, files.values())) / 1e6)):
            result, failure = _compared(reader, READERS[reader], folder)
    except TooSlow:
        result, failure = "failed", f"longer than {time.process_time() - start:.1f} s"
    except Exception:  # the point: no reader may raise anything else
        result, failure = "failed", traceback.format_exc()
    return Outcome(reader, number, result, time.process_time() - start, failure)


def _compared(name: str, reader: Reader, folder: Path) -> tuple[str, str]:
    try:
        read: Any = reader.read(folder)
    except Refused:  # the case is not the reader's to judge
        return "refused", ""
    except HeadcountError as error:
        return _refused(reader, folder, str(error))
    if reader.reference is None:
        return "read", ""
    try:
        reference = reader.reference(folder)
    except Refused as refused:
        return "failed", f"read what is wrong at line {refused.line}: {read!r:.500}"
    if not agrees(name, read, reference):
        return "failed", f"read {read!r:.500}, the reference {reference!r:.500}"
    return "read", ""


def _refused(reader: Reader, folder: Path, message: str) -> tuple[str, str]:
    if reader.names_file and str(folder) not in message:
        return "failed", f"the error does not name the file: {message:.500}"
    if len(message) > LONGEST_MESSAGE:
        return "failed", f"an error of {len(message)} characters: {message:.300}"
    if reader.reference is None:
        return "refused", ""
    try:
        reference = reader.reference(folder)
    except Refused as refused:
        if refused.line is not None and f":{refused.line}" not in message:
            return "failed", f"line {refused.line} is wrong, the error says: {message:.500}"
        return "refused", ""
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return "refused", ""  # the reference cannot read it either
    if reader.strict:
        return "failed", f"refused ({message:.500}) what the reference reads: {reference!r:.500}"
    return "refused", ""


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(more: int) -> None:
    """No more than so many bytes above what the process has: what asks for more fails instead of swapping."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, resource.RLIM_INFINITY))
