"""Registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.errors import UnknownName, UsageError
from headcount.registry import Registry


@pytest.fixture
def families() -> Registry[object]:
    return Registry("family", "headcount.sites.families", "FAMILY")


def test_files_are_members(families: Registry[object]) -> None:
    assert "bert" in families
    assert "gpt-neox" in families
    assert families["gpt-neox"] is families["gpt_neox"]
    assert len(families) == len(families.names()) == len(list(families.items()))


def test_unknown_name_suggests(families: Registry[object]) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'bert'") as caught:
        families["bertt"]
    assert isinstance(caught.value, KeyError | ValueError)
    assert not str(caught.value).startswith('"')  # KeyError would quote the message


def test_added_members_and_taken_names(families: Registry[object]) -> None:
    families.add("mine", object())
    assert "mine" in families.names()
    for name in ("mine", "bert"):
        with pytest.raises(UsageError, match="exists already"):
            families.add(name, object())


def test_the_folder_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []
    read_text = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda self, **options: reads.append(self) or read_text(self, **options))
    registry: Registry[object] = Registry("family", "headcount.sites.families", "FAMILY")
    assert len(dict(registry.items())) == len(registry)
    assert "bert" in registry
    assert len(reads) == len(set(reads))
