"""The documentation builds as a site: every page is in the navigation, every link and every public name resolves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert 'id="headcount.prune"' in (tmp_path / "reference" / "pruning.html").read_text(encoding="utf-8")
    assert not [page for page in tmp_path.rglob("*.html") if "unpkg.com" in page.read_text(encoding="utf-8")]
