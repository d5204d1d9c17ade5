"""Mount points."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headcount import mounts
from headcount.mounts import is_mount

_SHOW = "import sys, pathlib, headcount.mounts as m; print([m.is_mount(pathlib.Path(a)) for a in sys.argv[1:]])"


@pytest.mark.parametrize("told", [True, False])
def test_a_mount_point_is_told_from_other_folders(told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not told:
        monkeypatch.setattr(mounts, "_mount_number", lambda _: None)
    assert is_mount(Path("/proc"))
    assert not is_mount(tmp_path)
    assert not is_mount(tmp_path / "missing")


def test_a_folder_of_the_same_file_system_that_is_mounted_is_found(tmp_path: Path) -> None:
    """It has the device of its surroundings, and renaming it fails all the same."""
    volume, other = tmp_path / "volume", tmp_path / "other"
    volume.mkdir()
    other.mkdir()
    show = [sys.executable, "-c", _SHOW, str(volume), str(other), str(volume / "missing")]
    script = 'mount --bind "$1" "$2" || exit 77; shift 2; exec "$@"'
    try:
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script, "sh", str(other), str(volume), *show],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("this system has no unshare")
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("mounting is not permitted here")
    assert done.stdout.strip() == "[True, False, False]", done.stderr
