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
    number, parent_number = _mount_number(path), _mount_number(path.parent)
    return os.path.ismount(path) if number is None or parent_number is None else number != parent_number


def _mount_number(path: Path) -> str | None:
    """The number of the mount that a path is on; None if the system does not tell."""
    try:
        descriptor = os.open(path, os.O_PATH)
    except (AttributeError, OSError):  # not Linux
        return None
    try:
        match = re.search(r"^mnt_id:\s*(\d+)", Path(f"/proc/self/fdinfo/{descriptor}").read_text(), re.MULTILINE)
    except OSError:  # without /proc
        return None
    finally:
        os.close(descriptor)
    return match[1] if match else None
