"""What a terminal of some width shows, and whether anything was cut from it."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

from rich.console import Console

WIDTHS = (40, 80, 120)
_LONGEST = 24  # longer words may be folded
_BLOCKS = "\u25a0\u00b7\u2591\u2592\u2593\u2588"


def screen(shown: Any, width: int) -> str:
    terminal = Console(width=width, file=io.StringIO(), record=True, highlight=False)
    terminal.print(shown)
    return terminal.export_text()


def check_whole(shown: Any, width: int) -> None:
    """Nothing of what a very wide terminal shows is missing, cut in two, or beyond the edge."""
    wide, narrow = screen(shown, 2000), screen(shown, width)
    assert "\u2026" not in narrow
    assert max(map(len, narrow.splitlines())) <= width, narrow
    for block in _BLOCKS:
        assert narrow.count(block) == wide.count(block)
    missing = _words(wide) - _words(narrow)
    assert not missing, f"{missing} not in\n{narrow}"


def _words(text: str) -> Counter[str]:
    return Counter(word for word in text.split() if len(word) <= _LONGEST and not set(word) & set(_BLOCKS))
