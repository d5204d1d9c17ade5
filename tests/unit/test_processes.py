"""Processes: each knows the values of all; processes that cannot reach each other are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forks import shared_by
from headcount import processes
from headcount.checkpoints.loading import default_device
from headcount.errors import UsageError


def test_one_process_gathers_its_own_value() -> None:
    assert (processes.count(), processes.rank(), processes.is_main()) == (1, 0, True)
    assert processes.gather("value") == ["value"]


def test_two_processes_gather_the_values_of_both_in_their_order() -> None:
    def work() -> tuple[int, bool, list[str]]:
        return processes.rank(), processes.is_main(), processes.gather(f"value {processes.rank()}")

    both = ["value 0", "value 1"]
    assert shared_by(2, work) == [(0, True, both), (1, False, both)]


def test_processes_stay_together_when_the_device_of_a_model_is_looked_for() -> None:
    """Commands load the model first: `prune` and `score` on several processes ended there."""
    assert shared_by(2, lambda: (default_device(), processes.gather(processes.rank()))) == [("cpu", [0, 1])] * 2


def test_processes_that_are_not_joined_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the value of one process as if it were those of all: sums over shares of the data would be wrong."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="2 processes share the work, but accelerate has joined 1"):
        processes.gather("value")


@pytest.mark.slow  # fresh interpreters import torch for seconds; elsewhere processes are forked
def test_torchrun_starts_processes_that_gather(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("from headcount import processes\nprint(processes.gather(processes.rank()))\n")
    launch = "-m torch.distributed.run --standalone --nproc-per-node 2"
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *launch.split(), str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split("\n")[:2] == ["[0, 1]", "[0, 1]"]
