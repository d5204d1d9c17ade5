"""The Content-Security-Policy of the page, against a slow reading of the page itself."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re

import subjects as made
from headcount.report import html


def sha256(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_exactly_the_pages_inline_parts_are_allowed() -> None:
    page = html.page([made.ablation(made.ONE_LAYER)])
    (written,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(line.strip().split(" ", 1) for line in written.replace("&#x27;", "'").split(";"))
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    (packed,) = re.findall(r'<script type="text/plain" id="charts">(.*?)</script>', page)
    charts = gzip.decompress(base64.b64decode(packed)).decode()
    assert rules["script-src"].split() == [sha256(text) for text in (*scripts, charts)]
    styles = re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    assert rules["style-src"].split() == [sha256(text) for text in (*styles, "")]
    assert "unsafe" not in written
    assert {rules[name] for name in ("default-src", "base-uri", "form-action")} == {"'none'"}


def test_pictures_have_attributes_instead_of_styles() -> None:
    page = html.page([made.ablation(made.ONE_LAYER)])
    assert 'class="still"' in page
    assert not re.findall(r'<[a-z][^>]*\sstyle="', page)
    assert html._without_styles('<svg a="1"><path style="fill: none; stroke: #222; fill: red"/>style="x"</svg>') == (
        '<svg stroke-linejoin="round" stroke-linecap="butt" a="1"><path fill="red" stroke="#222"/>style="x"</svg>'
    )
