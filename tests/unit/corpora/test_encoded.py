"""Encoded pairs: ids in a file that is whole or absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

import laboratory
from headcount.corpora.encoded import encode


class Killed(BaseException):
    """The end of a process in the middle of its work."""


def test_killed_while_ids_are_written_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """datasets writes to a temporary file beside its cache."""
    tokenizer, pairs = laboratory.vocabulary(tmp_path / "vocabulary"), laboratory.parallel()["dev"]
    folder = tmp_path / "training"

    def killed(self: Dataset, *_: object, cache_file_name: str, **__: Any) -> None:
        (Path(cache_file_name).parent / "tmp12345").write_text("half")
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "map", killed)
        with pytest.raises(Killed):
            encode(pairs, tokenizer, file=folder / "dev.arrow")
    assert not list(folder.iterdir())
    stored = encode(pairs, tokenizer, file=folder / "dev.arrow")
    assert [path.name for path in folder.iterdir()] == ["dev.arrow"]
    assert stored[:] == encode(pairs, tokenizer)[:]
    assert stored[:] == encode(pairs, tokenizer, file=folder / "dev.arrow")[:]


def test_no_pairs_are_no_file(tmp_path: Path) -> None:
    tokenizer, pairs = laboratory.vocabulary(tmp_path / "vocabulary"), laboratory.parallel()["dev"]
    assert len(encode(pairs.select([]), tokenizer, file=tmp_path / "dev.arrow")) == 0
