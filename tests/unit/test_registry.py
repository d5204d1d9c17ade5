"""Registry."""

from __future__ import annotations

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
