"""Resident memory of one model: `python -m benchmarks.resident PATH` prints the bytes that loading and reading add."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_LENGTH = 64  # tokens that it reads


def resident_bytes(path: Path) -> int:
    """Measured in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.resident", str(path)], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1])


def _status(key: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def _main(path: Path) -> None:
    import headcount as hc
    from headcount.exports.load_export import load_export
    from headcount.studies.speed import TorchSubject

    load_export(Path(__file__))  # packages of the runtimes are imported before memory is counted
    before = _status("VmRSS")
    subject = load_export(path) or TorchSubject(hc.load(str(path)))
    subject.works(1, _LENGTH, 1)["reading"]()
    print(_status("VmRSS") - before)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
