"""The two locks: the same versions, and every file of the second with a hash."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pins(name: str) -> dict[str, str]:
    """Versions by package, with names as PyPI compares them."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==([^\s\\]+)", text, flags=re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in found}


def test_both_locks_pin_the_same_versions() -> None:
    """After a change of requirements.lock: make lock."""
    assert len(pins("requirements.lock")) > 50
    assert pins("requirements-ci.lock") == pins("requirements.lock")


def test_every_package_has_hashes_and_no_registry_is_named() -> None:
    text = (ROOT / "requirements-ci.lock").read_text(encoding="utf-8")
    packages = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert [package.split()[0] for package in packages if "--hash=sha256:" not in package] == []
    assert re.findall(r"https?://|index-url|find-links|trusted-host", text) == []


def test_torch_has_the_hash_of_its_cpu_build_alone() -> None:
    """Where a file of PyPI fits too, pip takes that one, which needs the libraries of CUDA."""
    (cpu_hash,) = re.findall(r"^TORCH_CPU_HASH := ([0-9a-f]{64})$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    (torch,) = re.findall(r"^torch==.*?(?=^\w)", (ROOT / "requirements-ci.lock").read_text(), flags=re.S | re.M)
    assert re.findall(r"sha256:(\w+)", torch) == [cpu_hash]
