"""is_mount: whether something is mounted at a path, which can then not be renamed or replaced."""

from __future__ import annotations

import os
import re
from pathlib import Path


def is_mount(path: Path) -> bool:
    """Whether a file or folder is a mount point, also of another folder of the same file system.

    `os.path.ismount` compares devices: it misses these, and takes subvolumes of Btrfs for mount points.
    """
    if not path.exists():
        return False
    own, around = _mount_number(path), _mount_number(path.parent)
    return os.path.ismount(path) if own is None or around is None else own != around


def _mount_number(path: Path) -> str | None:
    """The number of the mount that a path is on; None if the system does not tell."""
    try:
        descriptor = os.open(path, os.O_PATH)
    except (AttributeError, OSError):  # not Linux
        return None
    try:
        found = re.search(r"^mnt_id:\s*(\d+)", Path(f"/proc/self/fdinfo/{descriptor}").read_text(), re.MULTILINE)
    except OSError:  # without /proc
        return None
    finally:
        os.close(descriptor)
    return found[1] if found else None
