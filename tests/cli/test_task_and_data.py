"""Data without a task, a task without data and a split of a single file would be ignored."""

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


@pytest.mark.parametrize("command", ["score", "ablate", "roles", "study michel2019"])
def test_a_split_of_a_single_file_is_refused(command: str, tmp_path: Path) -> None:
    """All of the file was read, whatever its name."""
    (tmp_path / "texts.txt").write_text("a b\n")
    task = () if command == "roles" else ("--task", "language-modelling")
    given = [str(tmp_path / "no"), *task, "--data", str(tmp_path / "texts.txt"), "--split"]
    refused = CliRunner().invoke(main, [*command.split(), *given, "train"])
    assert refused.exit_code == 2
    assert "texts.txt is a single file, which has no splits" in " ".join(refused.output.split())
    own_name = CliRunner().invoke(main, [*command.split(), *given, "texts"])
    assert "single file" not in own_name.output
