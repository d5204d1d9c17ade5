"""docs/promises.md: every promise names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "promises.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def promises() -> list[str]:
    """Items of the page's lists; the lines of an item are joined."""
    text = re.sub(r"\n +", " ", PAGE.read_text(encoding="utf-8"))
    return [line for line in text.splitlines() if line.startswith("- ")]


def test_every_promise_names_a_test_that_exists() -> None:
    assert len(promises()) > 40
    for promise in promises():
        named = _TEST.findall(promise)
        assert named, f"no test holds it: {promise}"
        for file, name in named:
            assert (ROOT / file).is_file(), promise
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), promise


def test_no_test_is_named_twice() -> None:
    named = [name for promise in promises() for name in _TEST.findall(promise)]
    assert len(named) == len(set(named))
