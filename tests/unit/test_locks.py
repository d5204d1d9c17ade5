"""Locks: one process at a time works in a folder, and a lock ends with its process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headcount import locks
from headcount.errors import FolderError

HOLD = "import sys; from headcount import locks; {how}; print('held', flush=True); sys.stdin.read()"


@contextlib.contextmanager
def held_elsewhere(folder: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Locks are of open files: one that this process opens by itself is as good as another process's."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / locks.FOLDER_LOCK, "w", encoding="utf-8") as file:
        fcntl.flock(file, kind)
        file.write("process 4242 on elsewhere\n")
        file.flush()
        yield


def test_a_folder_in_use_is_refused_until_its_process_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code = HOLD.format(how=f"held = locks.held({str(folder)!r}); held.__enter__()")
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        message = rf"{folder} is in use by process {process.pid} on .*Wait until it ends, stop it, or give another"
        with pytest.raises(FolderError, match=message), locks.held(folder):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        with locks.held(folder):
            assert (folder / locks.FOLDER_LOCK).is_file()
    assert not (folder / locks.FOLDER_LOCK).exists()


def test_who_shares_a_folder_keeps_others_out(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path, fcntl.LOCK_SH):
        with locks.held(tmp_path, shared=True):
            pass
        assert (tmp_path / locks.FOLDER_LOCK).is_file(), "another process still holds it"
        with pytest.raises(FolderError, match="process"), locks.held(tmp_path):
            pass
    with held_elsewhere(tmp_path), pytest.raises(FolderError, match="process 4242"):
        locks.held(tmp_path, shared=True).__enter__()


def test_a_study_may_hold_what_its_command_holds(tmp_path: Path) -> None:
    with locks.held(tmp_path / "run"), locks.held(tmp_path / "model" / ".." / "run"):
        pass
    assert not list(tmp_path.iterdir())


def test_folders_without_results_go_again(tmp_path: Path) -> None:
    with locks.held(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert not list(tmp_path.iterdir())
    with locks.held(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / "result").touch()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["result"]


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match=r"Cannot write in .*file"), locks.held(tmp_path / "file" / "run"):
        pass


def test_a_lock_that_its_holder_removes_is_not_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened before, locked after the last holder removed it: whoever came between has a lock of the same name."""
    usual, opened = locks._try_lock, []

    def removed_first(descriptor: int, *, shared: bool) -> bool:
        if not opened:
            (tmp_path / locks.FOLDER_LOCK).unlink()
        opened.append(descriptor)
        return usual(descriptor, shared=shared)

    monkeypatch.setattr(locks, "_try_lock", removed_first)
    with locks.held(tmp_path):
        assert (tmp_path / locks.FOLDER_LOCK).is_file()
    assert len(opened) == 3, "tried again, and to release"


def test_a_claim_leaves_no_file(tmp_path: Path) -> None:
    with locks.alone(tmp_path / "point.claim") as ours, locks.alone(tmp_path / "point.claim") as theirs:
        assert ours
        assert not theirs
    assert not list(tmp_path.iterdir())


def test_a_full_disk_does_not_prevent_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to be written into the folder says so, with its name."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with locks.held(tmp_path / "run"):
        assert (tmp_path / "run" / locks.FOLDER_LOCK).is_file()
    assert not list(tmp_path.iterdir())
