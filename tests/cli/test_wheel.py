"""The wheel has everything that the program needs: it runs from a folder that has nothing but the wheel in it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import headcount

ROOT = Path(__file__).parents[2]


def test_the_wheel_is_built_and_runs(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "src"):
        (source / name).symlink_to(ROOT / name)
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(source)], check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    names = {path.suffix for path in (tmp_path / "installed" / "headcount" / "report" / "page").iterdir()}
    assert names >= {".html", ".css", ".js"}
    (metadata,) = (tmp_path / "installed").glob("*.dist-info/METADATA")
    header, _, description = metadata.read_text(encoding="utf-8").partition("\n\n")
    assert "Description-Content-Type: text/markdown" in header, "else PyPI shows the README as plain text"
    assert description.strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    done = subprocess.run(
        [sys.executable, "-m", "headcount", "--version"],
        cwd=tmp_path, env=environment, check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert headcount.__version__ in done.stdout
