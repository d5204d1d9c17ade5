"""Without a browser the tests of the page are skipped by name on a user's machine and fail where CI is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser.devtools import Browser, required


@pytest.mark.parametrize(("setting", "expected"), [({}, False), ({"CI": "false"}, False), ({"CI": "true"}, True)])
def test_only_ci_requires_a_browser(setting: dict[str, str], expected: bool) -> None:
    assert required(setting) is expected


def test_a_missing_browser_fails_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AssertionError, match="no browser is installed"):
        Browser(tmp_path)
