"""printable: text without terminal control characters, because records and data may be untrusted."""

from __future__ import annotations

import re

# CSI sequences as a whole; of all others what makes them sequences: C0 but for tab and new line, DEL and C1.
_COMMANDS = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    return _COMMANDS.sub("", text)
