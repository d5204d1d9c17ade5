"""Lines of a text file, in constant memory. Raises with the line at other encodings and NUL characters."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from headcount.errors import CorpusError


def read_lines(path: Path) -> Iterator[str]:
    """Each line without its end, LF or CRLF, and without a byte order mark at the start of the file."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    check_line_end(line, str(path))
                    line = line.removeprefix(codecs.BOM_UTF8)
                yield _decoded(line, f"{path}:{number}")
    except OSError as error:
        raise CorpusError(f"Cannot read {path}: {error.strerror or error}.") from error


def check_line_end(line: bytes, name: str) -> None:
    """Raise if the lines of a file, of which this is the first, end in carriage returns only: it would be one text."""
    if not line.endswith(b"\n") and b"\r" in line.rstrip(b"\r"):
        raise CorpusError(
            f"{name}:1 contains the whole file: its lines end in carriage returns (CR), as on old systems. "
            "Convert them to LF or CRLF, for example with tr '\\r' '\\n'.",
            reason="carriage returns",
        )


def _decoded(line: bytes, location: str) -> str:
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{location} is not UTF-8: {error}.", reason="not UTF-8") from error
    check_text(text, location)
    return text


def check_text(text: str, location: str) -> None:
    """Raise at NUL characters and at halves of a surrogate pair, which only JSON escapes can write."""
    if "\0" in text:
        raise CorpusError(
            f"{location} has a NUL character, so the file is not plain UTF-8 text. Convert it to UTF-8.",
            reason="NUL character",
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CorpusError(f"{location} has an unpaired surrogate, which is not a valid character: {error}.") from error
