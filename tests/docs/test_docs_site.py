"""The documentation builds as a site: every page is in the navigation, every link and every public name resolves.

What the program says of itself is filled in: options of commands, terms of the report.
"""

from __future__ import annotations

import os
import subprocess
import sys
from html import escape
from pathlib import Path

from headcount.report.terms import TERMS

ROOT = Path(__file__).parents[2]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    def built(page: str) -> str:
        return (tmp_path / page).read_text(encoding="utf-8")

    assert 'id="headcount.prune"' in built("reference/pruning.html")
    assert "--calibrate-split" in built("commands/prune.html")
    assert "--scratch-steps" in built("studies/tradeoff.html")
    assert [term.name for term in TERMS if escape(term.text, quote=False) not in built("glossary.html")] == []
    assert not [page for page in tmp_path.rglob("*.html") if "unpkg.com" in page.read_text(encoding="utf-8")]
