"""Atomic writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount import journal


def test_text_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = journal.write_text(tmp_path / "a.txt", "old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        journal.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "model"

    def write(word: str, *, fail: bool = False) -> None:
        with journal.new_folder(target, carry_over=lambda path: path.name == "notes") as fresh:
            (fresh / "weights").write_text(word)
            if fail:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write("half", fail=True)
    assert not list(tmp_path.iterdir())
    write("one")
    (target / "notes").write_text("mine")
    (target / "stale").write_text("goes")
    with pytest.raises(KeyboardInterrupt):
        write("half", fail=True)
    assert (target / "weights").read_text() == "one"
    write("two")
    assert sorted(path.name for path in target.iterdir()) == ["notes", "weights"]
    assert (target / "weights").read_text() == "two"
    assert list(tmp_path.iterdir()) == [target]
