"""Labelled and plain text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount.corpora.labelled import read_labelled
from headcount.corpora.plain import read_plain
from headcount.errors import CorpusError


def write(tmp_path: Path, name: str, *lines: str) -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_usual_names_are_found_and_empty_rows_counted(tmp_path: Path) -> None:
    for column in ("text", "sentence", "content"):
        found = read_labelled(write(tmp_path, "a.tsv", f"label\t{column}", "1\tgood film", "0\tbad film", "", "1\t "))
        assert (found.texts, found.labels, found.classes) == (["good film", "bad film"], [1, 0], ("0", "1"))
        assert found.skipped == {"empty": 2}
        assert found.pairs is None


def test_named_classes_pairs_and_limit(tmp_path: Path) -> None:
    rows = [{"premise": "a", "hypothesis": "b", "gold": gold} for gold in ("neutral", "entails", "neutral")]
    path = write(tmp_path, "a.jsonl", *map(json.dumps, rows))
    found = read_labelled(path, label="gold", pair="hypothesis", limit=2)
    assert found.classes == ("entails", "neutral")
    assert found.labels == [1, 0]
    assert found.pairs == ["b", "b"]


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["kind\ttext", "1\ta"], {}, "say which is the label"),
        (["label\tbody", "1\ta"], {}, "say which is the text"),
        (["label\ttext", "1\ta"], {"pair": "other"}, "no column 'other'"),
        (["label\ttext", "1"], {}, ":2 has 1 columns"),
        (["label\ttext"], {}, "no labelled text"),
    ],
)
def test_bad_tables(tmp_path: Path, lines: list[str], options: dict[str, str], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read_labelled(write(tmp_path, "a.tsv", *lines), **options)


def test_no_file_and_other_files(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no file"):
        read_labelled(tmp_path / "none.tsv")
    with pytest.raises(CorpusError, match="neither"):
        read_labelled(write(tmp_path, "a.csv", "x"))


def test_plain_text(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "one", "", "  two ", "three")
    assert read_plain(path) == ["one", "two", "three"]
    assert read_plain(path, limit=2) == ["one", "two"]
    for name, message in (("none.txt", "no file"), ("empty.txt", "no text")):
        (tmp_path / "empty.txt").write_text("\n \n")
        with pytest.raises(CorpusError, match=message):
            read_plain(tmp_path / name)
