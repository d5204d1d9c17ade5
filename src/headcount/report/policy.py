"""Policy: the Content-Security-Policy of the page, which allows the page's own scripts and styles by their hashes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

_EMPTY = ""  # Plotly adds an empty style element and fills it by insertRule, which no policy forbids


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """The policy: allows these inline scripts and styles and generated images, and no connections.

    scripts, styles: the exact text of each element. It must be text of headcount, never text of a record: a hash
    allows what it is made of.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_sources(scripts)}",
            f"style-src {_sources((*styles, _EMPTY))}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _sources(texts: Iterable[str]) -> str:
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts)
