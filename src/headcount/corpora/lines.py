"""Lines of a text file, in constant memory; what is not text (other encodings, NUL characters) is refused by line."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from headcount.errors import CorpusError


def read_lines(path: Path) -> Iterator[str]:
    """Each line without its end, LF or CRLF; a byte order mark at the start of the file is left out."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    _check_line_end(line, path)
                    line = line.removeprefix(codecs.BOM_UTF8)
                yield _decoded(line, f"{path}:{number}")
    except OSError as error:
        raise CorpusError(f"Cannot read {path}: {error.strerror or error}.") from error


def _check_line_end(first: bytes, path: Path) -> None:
    """A file whose lines end in carriage returns only would be one text, cut off at the length of the model."""
    if not first.endswith(b"\n") and b"\r" in first.rstrip(b"\r"):
        raise CorpusError(
            f"{path}:1 is all of the file: its lines end in carriage returns (CR), as on old systems. "
            "End them in LF or CRLF, for example with tr '\\r' '\\n'.",
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
    """Refuse characters that no text has: NUL, and halves of a surrogate pair, which only JSON escapes can spell."""
    if "\0" in text:
        raise CorpusError(
            f"{location} has a NUL character; text has none. Is the file binary, or in another encoding than UTF-8?",
            reason="NUL character",
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CorpusError(f"{location} has half of a surrogate pair, which is no character: {error}.") from error
