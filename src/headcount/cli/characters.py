"""printable: text without terminal control characters, because records and data may be untrusted."""

from __future__ import annotations

import re

# Whole CSI sequences; and the control characters of all others: C0 except tab and newline, DEL and C1.
_COMMANDS = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    return _COMMANDS.sub("", text)
