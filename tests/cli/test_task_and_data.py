"""Data without a task, or a task without data, would be ignored."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headcount.cli.main import main


@pytest.mark.parametrize("given", [("--data", "texts.tsv"), ("--task", "classification")])
def test_data_and_task_are_given_together(given: tuple[str, str], tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["prune", "m", "--remove", "encoder.0.3", *given, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert f"{given[0]} does nothing without" in result.output
