"""exchange: swap the names of two files or folders atomically, if the system supports it."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE, linux/fs.h
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # an older kernel, or a file system such as NFS


def exchange(path: Path, other: Path) -> bool:
    """Swap two paths of one file system. Returns False and changes nothing if the system cannot do it atomically."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or a C library without it
        return False
    if rename(_HERE, os.fsencode(path), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNABLE:
        return False
    raise OSError(number, os.strerror(number), str(path), None, str(other))
