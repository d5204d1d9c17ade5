"""Lines: progress lines for output without a progress bar, such as a log file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.text import Text

SECONDS = 30.0  # between two lines


class Lines:
    """Plain progress lines if no bar can be drawn: one every half minute, none for short work."""

    def __init__(self, console: Console, describe: Callable[[], str]) -> None:
        """describe: text of the current progress; nothing is printed before work has started."""
        self._console, self._describe = console, describe
        self._begin, self._end = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._print_on, daemon=True)

    def print(self) -> None:
        text = self._describe()
        if text:
            elapsed = clock(time.monotonic() - self._begin)
            self._console.print(Text(f"{elapsed}  {text}"), soft_wrap=True)

    def _print_on(self) -> None:
        while not self._end.wait(SECONDS):
            try:
                self.print()
            except BrokenPipeError:  # the output is closed: keep working
                return

    def __enter__(self) -> Self:
        if not self._console.is_terminal:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
