"""Text for the terminal and for files of lines: records and data may be untrusted, and models write any character."""

from __future__ import annotations

import re

# Whole CSI sequences; and the control characters of all others: C0 except tab and newline, DEL and C1.
_COMMANDS = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Text without terminal control characters."""
    return _COMMANDS.sub("", text)


def one_line(text: str) -> str:
    """Text with spaces for line breaks of any kind: line by line, translations must stay beside their sources."""
    return " ".join(text.splitlines())
