"""The device of a command on several processes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headcount.checkpoints.loading import default_device


def test_processes_on_cpus_are_joined_when_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """accelerate joins them once: asked without its flag for CPUs, each of two was told that it is alone."""
    asked: list[dict[str, Any]] = []

    def state(**options: Any) -> Any:
        asked.append(options)
        return SimpleNamespace(device="cpu")

    monkeypatch.setattr("accelerate.PartialState", state)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert default_device() == "cpu"
    assert asked == [{"cpu": True}]
