"""The examples that the heads of a pruned model were chosen on, in a file of its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import headcount as hc
import zoo
from headcount.checkpoints.chosen_on import FILE, read_chosen_on, write_chosen_on
from headcount.errors import CheckpointError
from headcount.tasks.overlap import Examples, measured_on

CHOSEN = Examples("dev", "data", ("one", "two", "three"))
BATCHES = Examples(None, "batches", None)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_chosen_on(tmp_path, [CHOSEN, BATCHES, CHOSEN])
    assert read_chosen_on(str(tmp_path)) == (CHOSEN, BATCHES)
    write_chosen_on(tmp_path, [])
    assert read_chosen_on(str(tmp_path)) == ()
    assert read_chosen_on("someone/model") == ()


def test_of_an_export_it_is_unknown_and_texts_do_not_count_as_held_out(tmp_path: Path) -> None:
    small = hc.remove(zoo.build("llama"), hc.locate(zoo.build("llama")).mask(off=["decoder.1.0"]), verify=False)
    hc.export(small, "vllm", tmp_path / "half", check=False)
    unknown = read_chosen_on(str(tmp_path / "half"))
    assert unknown == (Examples(None, "", None),)
    assert measured_on([*unknown, CHOSEN], Examples("test", "other", ("four",))).held_out is None
    hc.save(small, tmp_path / "saved")
    assert read_chosen_on(str(tmp_path / "saved")) == ()


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
