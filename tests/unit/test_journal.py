"""Atomic writes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import save_file

from headcount import file_list, journal
from headcount.errors import FolderError, RecordError
from limits import file_size_limit


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


class Killed(BaseException):
    """The end of a process in the middle of its work."""


def kill_at(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the process end before its n-th change of a name; it removes nothing any more."""
    changes: list[Any] = []

    def mortal(usual: Callable[..., Any]) -> Callable[..., Any]:
        def change(*paths: Any) -> Any:
            changes.append(paths)
            if len(changes) >= number:
                raise Killed
            return usual(*paths)

        return change

    monkeypatch.setattr(os, "rename", mortal(os.rename))
    monkeypatch.setattr(journal, "exchange", mortal(journal.exchange))
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)


def test_a_kept_file_does_not_lose_to_a_new_one_of_its_name(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    for name, text in {"notes": "mine", "notes.old": "older", "same": "same"}.items():
        (target / name).write_text(text)
    with journal.new_folder(target, carry_over=lambda _: True) as fresh:
        (fresh / "notes").write_text("new")
        (fresh / "same").write_text("same")
    found = {path.name: path.read_text() for path in target.iterdir()}
    assert found == {"notes": "new", "notes.old": "older", "notes.old2": "mine", "same": "same"}


@pytest.mark.parametrize("name", ["old", "new", "gone", "lock", "page.html"])
def test_a_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    """Also one that a scratch folder uses: half a file is never taken for the old one."""
    target = journal.write_text(tmp_path / name, "finished")
    with contextlib.suppress(KeyboardInterrupt), journal.new_file(target) as fresh:
        fresh.write_text("half of a fi")
        raise KeyboardInterrupt
    assert target.read_text() == "finished"
    assert journal.write_text(target, "again").read_text() == "again"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("in_one_step", "number", "there", "recovered"),
    [
        (True, 1, "old", "old"),
        (True, 2, "new", "new"),
        (False, 2, "old", "old"),
        (False, 3, None, "old"),
        (False, 4, "new", "new"),
    ],
)
def test_killed_while_a_folder_is_replaced_there_is_one(
    in_one_step: bool, number: int, there: str | None, recovered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once where names can be exchanged, else after the next run has looked at the folder."""
    target = tmp_path / "model"
    write_folder(target, "old")
    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        if not in_one_step:
            patch.setattr("headcount.exchange._EXCHANGE", 1 << 20)  # a flag that no kernel knows
        kill_at(number, patch)
        write_folder(target, "new")
    assert ((target / "weights").read_text() if target.exists() else None) == there
    with journal.reserved(target):
        assert (target / "weights").read_text() == recovered
    assert list(tmp_path.iterdir()) == [target]


def write_folder(target: Path, word: str) -> None:
    with journal.new_folder(target) as fresh:
        (fresh / "weights").write_text(word)


def test_what_killed_processes_left_goes_unless_a_living_one_holds_it(tmp_path: Path) -> None:
    living = journal.new_folder(tmp_path / "model")
    fresh = living.__enter__()
    (fresh / "weights").write_text("living")
    dead = tmp_path / ".model.headcount-dead"
    for path in (dead / "new" / "weights", tmp_path / ".model.notes", tmp_path / ".models.headcount-other" / "lock"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (dead / "lock").touch()
    write_folder(tmp_path / "model", "next")
    assert {path.name for path in tmp_path.iterdir()} == {
        "model", ".model.notes", ".models.headcount-other", fresh.parent.name,
    }  # fmt: skip
    living.__exit__(None, None, None)
    assert (tmp_path / "model" / "weights").read_text() == "living"


def test_a_scratch_folder_whose_process_was_killed_before_it_locked_it_goes(tmp_path: Path) -> None:
    (tmp_path / ".record.json.headcount-dead").mkdir()
    journal.write_text(tmp_path / "record.json", "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_a_scratch_folder_that_another_process_takes_for_abandoned_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the making of the folder and its lock."""
    usual, taken = tempfile.mkdtemp, []

    def taken_away(**options: Any) -> str:
        folder = usual(**options)
        if not taken:
            taken.append(folder)
            journal.recover(tmp_path / "record.json")
            assert not Path(folder).exists()
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", taken_away)
    journal.write_text(tmp_path / "record.json", "{}")
    assert taken
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_killed_while_a_folder_is_removed_there_is_all_of_it_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it, without the note of its settings, would be taken for the work of other settings."""
    shelf = journal.Shelf(tmp_path / "unfinished", {"data": "one"})
    shelf.put("sums", {"total": np.ones(2)})

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(Killed):
            journal.remove_folder(shelf.folder)
    assert not (tmp_path / "unfinished").exists()
    other = journal.Shelf(tmp_path / "unfinished", {"data": "two"})
    assert other.get("sums") is None
    journal.remove_folder(other.folder)
    assert not list(tmp_path.iterdir())


def test_results_are_for_those_whom_the_umask_lets_read(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        file = journal.write_text(tmp_path / "record.json", "{}")
        write_folder(tmp_path / "model", "new")
        (tmp_path / "model" / "secret").touch(mode=0o600)
        with journal.new_folder(tmp_path / "model", carry_over=lambda path: path.name == "secret") as fresh:
            save_file({"one": np.ones(1)}, fresh / "model.safetensors")  # for its owner alone
        with journal.new_file(tmp_path / "state.safetensors") as fresh:
            save_file({"one": np.ones(1)}, fresh)
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert modes == {tmp_path / "model" / "model.safetensors": 0o640, tmp_path / "model" / "secret": 0o600}
    assert (tmp_path / "state.safetensors").stat().st_mode & 0o777 == 0o640
    assert file.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o750


def test_links_that_come_along_stay_links(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("secret")
    write_folder(tmp_path / "model", "old")
    (tmp_path / "model" / "link").symlink_to("../private")
    (tmp_path / "model" / "gone").symlink_to("nowhere")
    with journal.new_folder(tmp_path / "model", carry_over=lambda path: path.name != "weights"):
        pass
    assert {path.name: os.readlink(path) for path in (tmp_path / "model").iterdir()} == {
        "link": "../private", "gone": "nowhere",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["out", "out/figures"])
def test_dangling_links_are_refused_before_any_work(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises(FolderError, match=r"is a link to .*nowhere, which does not exist"):
        journal.reserved(tmp_path / "out").__enter__()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"steps": 3', "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"steps": ' + "9" * 5000 + "}", "4300 digits"),
        ('{"loss": NaN}', "NaN"),
        ("\udcff", "decode"),
    ],
    ids=["cut off", "deep", "huge", "NaN", "not text"],
)
def test_json_that_cannot_be_read_is_an_error_that_names_the_file(text: str, cause: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(text, errors="surrogateescape")
    with pytest.raises(RecordError, match=f"settings.json.*{cause}"):
        journal.claim(tmp_path, "settings.json", {"steps": 3})


def test_json_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LARGEST_JSON", 2_000_000)
    (tmp_path / "record.json").write_text(" " * 3_000_000 + "{}")
    with pytest.raises(RecordError, match=r"record.json has 3 MB.*up to 2 MB"):
        journal.read_json(tmp_path / "record.json")


@pytest.mark.parametrize("name", ["x", "ä"])
def test_json_that_would_be_too_large_to_read_is_written_without_spaces(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statistics of two million texts were written, and the record was refused."""
    content = {name: [[1.5, 20.0]] * 50, "rows": name * 100}
    file = tmp_path / "record.json"
    indented = journal.write_json(file, content).stat().st_size
    assert file.read_text().startswith('{\n  "')
    monkeypatch.setattr(journal, "LARGEST_JSON", indented - 1)
    assert journal.read_json(journal.write_json(file, content)) == content
    compact = file.stat().st_size
    assert compact < 0.5 * indented
    monkeypatch.setattr(journal, "LARGEST_JSON", compact - 1)
    with pytest.warns(UserWarning, match=r"record\.json has .*cannot show or compare this one"):
        journal.write_json(file, content)
    assert json.loads(file.read_text()) == content


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), SafetensorError("I/O: No space left on device (28)")]
)
def test_a_full_disk_is_said_with_the_file(error: Exception, tmp_path: Path) -> None:
    message = r"disk is full: .*a.txt was not written. \d+ MB of \d+ MB are free"
    with pytest.raises(FolderError, match=message), journal.new_file(tmp_path / "a.txt"):
        raise error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EFBIG, os.strerror(errno.EFBIG)), SafetensorError("I/O error: File too large (os error 27)")],
)
def test_a_file_above_the_limit_is_said_with_its_name(error: Exception, tmp_path: Path) -> None:
    message = r"a.txt was not written: it would be larger than a file may be here \(ulimit -f"
    with pytest.raises(FolderError, match=message), journal.new_file(tmp_path / "a.txt"):
        raise error
    assert not list(tmp_path.iterdir())


def test_a_library_that_does_not_say_why_it_could_not_write_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = r"a.bin was not written: it would be larger than a file may be here \(ulimit -f"
    with pytest.raises(FolderError, match=message), file_size_limit(1000), journal.new_file(tmp_path / "a.bin") as new:
        np.zeros(1000).tofile(new)
    with pytest.raises(RuntimeError, match="iostream error"), journal.new_file(tmp_path / "a.bin"):
        raise RuntimeError("basic_ios::clear: iostream error")  # there is room: something else
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(total=10**9, free=0))
    with pytest.raises(FolderError, match=r"disk is full: .*a.bin was not"), journal.new_file(tmp_path / "a.bin"):
        raise RuntimeError("basic_ios::clear: iostream error")
    assert not list(tmp_path.iterdir())


def test_what_killed_processes_left_beside_finished_files_goes_when_work_resumes(tmp_path: Path) -> None:
    state = journal.write_text(tmp_path / "out" / "training" / "tune" / "state.json", "{}")
    for folder in (tmp_path / "out", state.parent.parent, state.parent):
        (folder / ".state.json.headcount-abc").mkdir()
        (folder / ".state.json.headcount-abc" / "lock").touch()
    with journal.reserved(tmp_path / "out"):
        assert list(state.parent.iterdir()) == [state]
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "out", state.parent.parent, state.parent, state]


def test_of_unfinished_work_only_what_was_written_there_is_removed(tmp_path: Path) -> None:
    """Also what an earlier run wrote that was killed while it wrote on the list; not a file of the user, nor a link."""
    work = tmp_path / "work"
    with file_list.listing(work):
        journal.write_json(work / "settings.json", {})
        with (work / file_list.NAME).open("a") as file:
            file.write('\n"half of a na')
    with file_list.listing(work):
        journal.write_json(work / "first" / "piece.json", {})
        write_folder(work / "model", "new")
    (work / "first" / "mine.json").write_text("{}")
    (work / "link").symlink_to(work / "nowhere")
    journal.remove_listed(work)
    assert {path for path in work.rglob("*") if not path.is_dir()} == {work / "first" / "mine.json", work / "link"}
    (work / "first" / "mine.json").unlink()
    (work / "link").unlink()
    journal.remove_listed(work)
    assert not work.exists()


def test_what_stands_in_the_place_of_a_result_stays(tmp_path: Path) -> None:
    """Also a folder, and a link to nowhere; what is accepted, or the same, is replaced."""
    file, folder, link = tmp_path / "r.json", tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    (folder / "mine").touch()
    link.symlink_to("nowhere")
    for path in (file, folder, link):
        for _ in range(2):
            journal.write_text(path, "new", replaces=journal.nothing)
    journal.write_text(file, "newer", replaces=lambda old: old.read_text() == "new")
    assert file.read_text() == "newer"
    assert (tmp_path / "folder.old" / "mine").is_file()
    assert os.readlink(tmp_path / "link.old") == "nowhere"
    assert len([*tmp_path.iterdir()]) == 5


def test_what_one_process_set_aside_is_not_replaced_by_what_another_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, usual = tmp_path / "r.json", journal.free_name
    file.write_text("of the user")

    def free_name(path: Path) -> Path:
        name = usual(path)
        if file.read_text() == "of the user":  # until the other process has done its work
            file.rename(name)
            file.write_text("of another process")
        return name

    monkeypatch.setattr(journal, "free_name", free_name)
    journal.write_text(file, "of this one", replaces=journal.nothing)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {"r.json": "of this one", "r.json.old": "of the user", "r.json.old2": "of another process"}
