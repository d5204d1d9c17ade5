"""MkDocs hooks: folders in the navigation, links out of docs/, and what the program says of itself.

A folder in the navigation stands for its pages; links to files outside docs/ become plain text. Pages of commands and
studies end with the command's --help, and the glossary with the terms of the report.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from headcount.cli.main import main
from headcount.report.terms import glossary_table

DOCS = Path(__file__).parent
TERMS = "<!-- terms of the report -->"
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)(#[^)]*)?\)")
_GROUPS = {"commands": (), "studies": ("study",)}  # folder -> the commands above those of its pages


def on_config(config: Any) -> Any:
    config.nav = [{title: _pages(entry)} for item in config.nav for title, entry in item.items()]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    path = Path(page.file.src_path)
    folder = (DOCS / path).parent

    def plain_if_outside(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target or (folder / target).resolve().is_relative_to(DOCS):
            return match[0]
        return match[1]

    text = _LINK.sub(plain_if_outside, markdown).replace(TERMS, glossary_table())
    if path.parent.name in _GROUPS and path.stem != "README":
        text += f"\n## All options\n```text\n{_help(*_GROUPS[path.parent.name], path.stem)}\n```\n"
    return text


def _help(*names: str) -> str:
    """What `headcount NAMES --help` prints."""
    command: Any = main
    context = click.Context(command, info_name="headcount", terminal_width=100)
    for name in names:
        command = command.get_command(context, name)
        context = click.Context(command, info_name=name, parent=context, terminal_width=100)
    return str(command.get_help(context))


def _pages(entry: Any) -> Any:
    """All pages of a folder, its README first."""
    if not isinstance(entry, str) or not (DOCS / entry).is_dir():
        return entry
    pages = sorted((DOCS / entry).glob("*.md"), key=lambda page: (page.stem != "README", page.stem))
    return [page.relative_to(DOCS).as_posix() for page in pages]
