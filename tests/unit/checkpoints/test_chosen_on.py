"""The examples that the heads of a pruned model were chosen on, in a file of its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.checkpoints.chosen_on import FILE, read_chosen_on, write_chosen_on
from headcount.errors import CheckpointError
from headcount.tasks.overlap import Examples

CHOSEN = Examples("dev", "data", ("one", "two", "three"))
BATCHES = Examples(None, "batches", None)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_chosen_on(tmp_path, [CHOSEN, BATCHES, CHOSEN])
    assert read_chosen_on(str(tmp_path)) == (CHOSEN, BATCHES)
    write_chosen_on(tmp_path, [])
    assert read_chosen_on(str(tmp_path)) == ()
    assert read_chosen_on("someone/model") == ()


def test_of_very_many_examples_only_the_hash_of_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.checkpoints.chosen_on.MOST_HASHES", 2)
    write_chosen_on(tmp_path, [CHOSEN])
    assert read_chosen_on(str(tmp_path)) == (Examples("dev", "data", None),)


@pytest.mark.parametrize(
    "content",
    [
        "[]", "{", "{}", '{"examples": {}}', '{"examples": [1]}', '{"examples": [{"data": "a", "split": 1, "hashes": []}]}',
        '{"examples": [{"data": "a", "split": null, "hashes": [1]}]}', '{"examples": [{"data": "a", "split": null}]}',
    ],
)  # fmt: skip
def test_damaged_files_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(CheckpointError, match="chosen_on"):
        read_chosen_on(str(tmp_path))
