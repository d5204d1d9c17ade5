"""A source says where data come from; one rule says what its name stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headcount.corpora.location import Location
from headcount.corpora.source import Source, default_split
from headcount.errors import UnknownName, UsageError


def test_what_a_name_stands_for(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("a\n")
    names = {
        "grammar": "grammar", "grammar:bare": "grammar", "grammarian": "missing", "hf:glue:sst2": "hub",
        str(tmp_path): "folder", str(tmp_path / "texts.txt"): "file", str(tmp_path / "none"): "missing",
    }  # fmt: skip
    assert {name: Source(name).kind for name in names} == names
    assert Location.of("hf:glue:sst2").hub_name == "glue:sst2"


def test_columns_are_checked() -> None:
    with pytest.raises(UnknownName, match="label"):
        Source("d", columns={"labels": "class"})
    with pytest.raises(UsageError, match="names of source and target"):
        Source("d", columns={"source": "en"})
    for limit in (0, -1, 2.5, "all"):
        with pytest.raises(UsageError, match="limit must be a whole number of examples, at least 1"):
            Source("d", limit=limit)  # type: ignore[arg-type]


def test_one_source_for_every_kind_of_text(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("gold\tbody\tother\nyes\tw5 w6\tw7\nno\tw8\tw9\n")
    (tmp_path / "dev.txt").write_text("w5 w6\nw7\n")
    columns = {"text": "body", "label": "gold"}
    source = Source(str(tmp_path), "dev", columns=columns, limit=1)
    assert source.labelled().texts == ["w5 w6"]
    assert source.plain() == ["w5 w6"]
    pairs = Source(str(tmp_path / "dev.tsv"), "dev", columns={"source": "body", "target": "other"}).pairs()
    assert pairs["target"][:] == ["w7", "w9"]
    assert source.split_names((".tsv",)) == ("dev",)


@pytest.mark.parametrize(
    ("name", "content", "read"),
    [
        ("texts.txt", "one\n\ntwo\n \n", Source.plain),
        ("train.tsv", "text\tlabel\n\na\t0\n\t1\nb\t1\n", Source.labelled),
        ("test.tsv", "source\ttarget\na\tb\n\t\n\tb\n", Source.pairs),
    ],
)
def test_rows_that_are_left_out_are_counted_aloud(name: str, content: str, read: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.warns(UserWarning, match=rf"{name} were skipped: 2 empty"):
        read(Source(str(tmp_path / name)))


def test_halves_share_nothing_and_leave_nothing_out() -> None:
    examples = [(f"w{number}",) for number in range(40)]
    halves = [Source("d", half=half).rows(examples) for half in (1, 2)]
    assert sorted(halves[0] + halves[1]) == Source("d").rows(examples) == list(range(40))
    with pytest.raises(UsageError, match="too few texts"):
        Source("d", half=1).rows([])


def test_a_file_of_pairs_is_read_as_a_whole(tmp_path: Path) -> None:
    """Without a split, and with the default split of a command; a split that is named must exist."""
    file = tmp_path / "pairs.tsv"
    file.write_text("source\ttarget\na\tb\nc\td\n")
    assert default_split(str(file), "test") is None
    assert default_split(str(tmp_path), "test") == "test"
    assert Source(str(file)).pairs()["source"][:] == ["a", "c"]
    assert Source(str(file)).sentences().targets == ["b", "d"]
    assert Source(str(file), "pairs").pairs()["source"][:] == ["a", "c"]
    assert (Source(str(file)).label, Source("grammar", "dev").label) == (str(file), "grammar dev")
    for read in (Source.pairs, Source.sentences):
        with pytest.raises(UnknownName, match=r"Unknown split 'test'.*pairs"):
            read(Source(str(file), "test"))
