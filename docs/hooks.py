"""MkDocs hooks: a folder in the navigation stands for its pages; links to files outside docs/ become plain text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)(#[^)]*)?\)")


def on_config(config: Any) -> Any:
    config.nav = [{title: _pages(entry)} for item in config.nav for title, entry in item.items()]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder = (DOCS / page.file.src_path).parent

    def plain_if_outside(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target or (folder / target).resolve().is_relative_to(DOCS):
            return match[0]
        return match[1]

    return _LINK.sub(plain_if_outside, markdown)


def _pages(entry: Any) -> Any:
    """All pages of a folder, its README first."""
    if not isinstance(entry, str) or not (DOCS / entry).is_dir():
        return entry
    pages = sorted((DOCS / entry).glob("*.md"), key=lambda page: (page.stem != "README", page.stem))
    return [page.relative_to(DOCS).as_posix() for page in pages]
