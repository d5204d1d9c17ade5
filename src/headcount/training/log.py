"""The log of a training run: one JSON object per line, truncated to the state a run resumes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headcount import journal


class Log:
    """Lines about steps and epochs in `metrics.jsonl`."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def rewind(self, step: int, epoch: int) -> None:
        """Drop lines after this step, and an incomplete last line.

        epoch: number of finished epochs. The line of an epoch that was measured before the state was written is dropped
        too: it is measured again. Lines of steps have a rate, lines of epochs do not.
        """
        earlier = [line for line in self.lines() if line["step"] <= step and ("rate" in line or line["epoch"] <= epoch)]
        journal.write_text(self._file, "".join(json.dumps(line) + "\n" for line in earlier))

    def add(self, **values: Any) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        if not self._file.is_file():
            return []
        entries = []
        for line in self._file.read_text(encoding="utf-8").splitlines():
            try:
                entries.append(json.loads(line))
            except json.JSONDecodeError:  # the run was killed while writing this line
                break
        return entries
