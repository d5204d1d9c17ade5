"""Labelled and plain text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount.corpora.labelled import read_labelled
from headcount.corpora.plain import read_plain
from headcount.errors import CorpusError, UnknownName


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


def test_splits_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path, "train.tsv", "label\tsentence", "good\ta", "bad\tb")
    write(tmp_path, "validation.tsv", "label\tcontent", "good\tc")
    write(tmp_path, "test.txt", "plain text")
    assert read_labelled(tmp_path, split="train").labels == [1, 0]
    dev = read_labelled(tmp_path, split="dev", classes=("bad", "good"))
    assert (dev.labels, dev.classes) == ([1], ("bad", "good")), "a split without every class is numbered as the model"
    assert read_plain(tmp_path, split="test") == ["plain text"]
    with pytest.raises(CorpusError, match="say which"):
        read_labelled(tmp_path)
    with pytest.raises(UnknownName, match="train"):
        read_labelled(tmp_path, split="trian")
    with pytest.raises(CorpusError, match="knows no, yes"):
        read_labelled(tmp_path, split="dev", classes=("no", "yes"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"no \.tsv or \.jsonl files"):
        read_labelled(tmp_path / "empty", split="dev")


def test_data_sets_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's own code is replaced by a data set made here; the rest is the real road."""
    import datasets

    def load(name: str, config: str | None) -> datasets.DatasetDict:
        assert (name, config) == ("glue", "sst2")
        rows = [{"sentence": "fine", "label": 1, "idx": 0}, {"sentence": "poor", "label": 0, "idx": 1}]
        return datasets.DatasetDict({"validation": datasets.Dataset.from_list(rows)})

    monkeypatch.setattr(datasets, "load_dataset", load)
    found = read_labelled("hf:glue:sst2", split="dev")
    assert (found.texts, found.labels) == (["fine", "poor"], [1, 0])
    assert read_plain("hf:glue:sst2", split="dev", text="sentence", limit=1) == ["fine"]
    with pytest.raises(CorpusError, match="the columns sentence, label, idx"):
        read_plain("hf:glue:sst2", split="dev")
