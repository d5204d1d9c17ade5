"""write_page: the file of a page. It replaces a page of the same measurements, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from headcount import journal

_BRAND = '<span class="brand">headcount</span>'  # in page/page.html
_RECORD = re.compile(r"<dt>(.*?)</dt><dd><code>(.*?)</code><br>")  # study and signature, at the end of a page
_SUBJECT = ("model:", "weights:", "data:")


def is_page(file: Path) -> bool:
    """Whether a file is a page that headcount wrote."""
    return file.is_file() and _BRAND.encode() in file.read_bytes()


def write_page(file: Path, text: str) -> Path:
    """Write a page atomically. One with further studies, models or data, or another file, stays as NAME.old."""

    def replaces(older: Path) -> bool:
        records = _shown(older.read_text(encoding="utf-8")) if is_page(older) else set()
        return bool(records) and records <= _shown(text)

    return journal.write_text(file, text, replaces=replaces)


def _shown(page: str) -> set[tuple[str, ...]]:
    """The study, the model and the data of every record on a page."""
    return {
        (study, *(part for part in signature.split("|") if part.startswith(_SUBJECT)))
        for study, signature in _RECORD.findall(page)
    }
