"""Parallel text from every place it may stand, and what is said about what cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headcount.corpora.parallel import read_parallel
from headcount.errors import CorpusError, FolderError, UnknownName
from limits import file_size_limit

PAIRS = [("a dog runs", "ein Hund läuft"), ("two cats", "zwei Katzen"), ("", "leer"), ("x " * 9, "zu lang")]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


def folder(tmp_path: Path, **splits: list[tuple[str, str]]) -> Path:
    path = tmp_path / "corpus"
    path.mkdir()
    for split, pairs in splits.items():
        for place, language in enumerate(("en", "de")):
            (path / f"{split}.{language}").write_text("".join(f"{pair[place]}\n" for pair in pairs), encoding="utf-8")
    return path


def read_all(place: str | Path, **options: Any) -> dict[str, Any]:
    """Every split: what is not asked for is not read."""
    return dict(read_parallel(place, **options).splits)


def test_a_folder_of_lines(tmp_path: Path) -> None:
    corpus = read_parallel(
        folder(tmp_path, train=PAIRS, valid=PAIRS[:1], test2017=PAIRS[:2]), languages=("en", "de"), longest=5
    )
    assert sorted(corpus.splits) == ["dev", "test2017", "train"]
    assert corpus["train"][:] == {"source": ["a dog runs", "two cats"], "target": ["ein Hund läuft", "zwei Katzen"]}
    assert corpus["dev+test2017"]["source"][:] == ["a dog runs", "a dog runs", "two cats"]
    assert corpus.skipped["train"] == {"empty": 1, "too long": 1}
    assert corpus.languages == ("en", "de")
    with pytest.raises(UnknownName, match="Did you mean 'train'"):
        corpus["dev+trian"]


def test_the_other_way_round_and_after_a_change(tmp_path: Path) -> None:
    path = folder(tmp_path, train=PAIRS[:2])
    assert read_parallel(path, languages=("de", "en"))["train"][1] == {"source": "zwei Katzen", "target": "two cats"}
    (path / "train.en").write_text("one\ntwo\nthree\n")
    (path / "train.de").write_text("eins\nzwei\ndrei\n")
    assert len(read_parallel(path, languages=("de", "en"))["train"]) == 3


def test_the_same_name_in_another_folder_is_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Formerly a relative path, size and time of change were enough to be given the sentences of another folder."""
    for name, text in (("one", "a\tb\n"), ("other", "c\td\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "test.tsv").write_text(text)
        os.utime(tmp_path / name / "test.tsv", ns=(0, 0))
        monkeypatch.chdir(tmp_path / name)
        assert read_parallel("test.tsv")["test"][0] == dict(zip(("source", "target"), text.split(), strict=True))


def test_a_file_of_the_same_size_and_time_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    for text in ("a\tb\n", "c\td\n"):
        path.write_text(text)
        os.utime(path, ns=(0, 0))
        assert read_parallel(path)["test"][0] == dict(zip(("source", "target"), text.split(), strict=True))


def test_only_the_split_asked_for_is_read(tmp_path: Path) -> None:
    path = folder(tmp_path, test=PAIRS[:1], dev=PAIRS[:1])
    (path / "raw.dev.tsv").write_text("id\tsentence\tlabel\n1\ta\t0\n")
    (path / "notes.en").write_text("a file without counterpart\n")
    corpus = read_parallel(path, languages=("en", "de"))
    assert corpus["test"]["source"][:] == ["a dog runs"]
    assert set(corpus.splits) == {"test", "dev", "raw.dev", "notes"}
    with pytest.raises(CorpusError, match=r"raw\.dev\.tsv:2 has no columns"):
        corpus["raw.dev"]
    with pytest.raises(CorpusError, match="has no counterpart"):
        corpus["notes"]


def test_a_split_under_two_names_is_refused_once_asked_for(tmp_path: Path) -> None:
    path = folder(tmp_path, test=PAIRS[:1], dev=PAIRS[:1], val=PAIRS[:2])
    corpus = read_parallel(path, languages=("en", "de"))
    assert len(corpus["test"]) == 1
    for name in ("dev", "val"):
        with pytest.raises(CorpusError, match=r"has dev\.en with dev\.de and val\.en with val\.de for the split dev"):
            corpus[name]
    (path / "test.jsonl").write_text('{"en": "a", "de": "b"}\n')
    with pytest.raises(CorpusError, match=r"test\.en with test\.de and test\.jsonl for the split test"):
        read_parallel(path, languages=("en", "de"))["test"]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    path = folder(tmp_path, test=PAIRS[:1])
    for file in (path / "test.en", path / "test.de"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read_parallel(path, languages=("en", "de"))["test"][0] == {
        "source": "a dog runs",
        "target": "ein Hund läuft",
    }
    for name, text in (
        ("a.tsv", "source\ttarget\nx\ty\n"),
        ("b.tsv", "x 1\ty 1\n"),
        ("c.jsonl", '{"source": "x", "target": "y"}'),
    ):
        (tmp_path / name).write_text("\ufeff" + text)
        (pair,) = read_parallel(tmp_path / name)[name[0]]
        assert (pair["source"][0], pair["target"][0]) == ("x", "y")


def test_a_header_is_found_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("de\ten\nHund\tdog\n")
    (pair,) = read_parallel(tmp_path / "a.tsv", languages=("en", "de"))["a"]
    assert pair == {"source": "dog", "target": "Hund"}


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("source\ttarget\n" + "a b\tc d\n" * 2000)
    message = r"could not be written to .*cache, the cache of datasets: File too large. Make room .*HF_DATASETS_CACHE"
    with pytest.raises(FolderError, match=message), file_size_limit(5000):
        read_all(tmp_path / "train.tsv")


def test_it_is_memory_mapped(tmp_path: Path) -> None:
    corpus = read_parallel(folder(tmp_path, train=PAIRS[:2] * 500), languages=("en", "de"))
    assert corpus["train"].cache_files
    assert len(corpus["train"]) == 1000


@pytest.mark.parametrize("header", [True, False])
def test_a_table(tmp_path: Path, header: bool) -> None:
    lines = ["source\ttarget"] * header + [f"{source}\t{target}" for source, target in PAIRS[:2]] + [""]
    path = tmp_path / "train.tsv"
    path.write_text("\n".join(lines) + "\n")
    assert read_parallel(path)["train"]["target"] == ["ein Hund läuft", "zwei Katzen"]


def test_a_table_with_more_columns(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("id\tenglish\tgerman\n1\tdog\tHund\n")
    assert read_parallel(path, columns=("english", "german"))["pairs"][0] == {"source": "dog", "target": "Hund"}
    with pytest.raises(CorpusError, match="columns="):
        read_all(path)


@pytest.mark.parametrize("nested", [True, False])
def test_json_lines(tmp_path: Path, nested: bool) -> None:
    rows = [{"en": source, "de": target} for source, target in PAIRS[:2]]
    path = tmp_path / "dev.jsonl"
    path.write_text("\n".join(json.dumps({"translation": row} if nested else row) for row in rows))
    assert read_parallel(path, languages=("en", "de"))["dev"]["source"] == ["a dog runs", "two cats"]


def test_a_data_set_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's own code is replaced by a data set made here; the rest is the real road."""
    import datasets

    def load(name: str, config: str | None) -> datasets.DatasetDict:
        assert (name, config) == ("some/set", "de-en")
        rows = [{"translation": {"en": source, "de": target}} for source, target in PAIRS]
        return datasets.DatasetDict({"validation": datasets.Dataset.from_list(rows)})

    monkeypatch.setattr(datasets, "load_dataset", load)
    corpus = read_parallel("hf:some/set:de-en", languages=("en", "de"), longest=5)
    assert corpus["dev"]["target"] == ["ein Hund läuft", "zwei Katzen"]
    assert corpus.skipped["dev"] == {"empty or too long": 2}
    with pytest.raises(CorpusError, match=r"row 0 .*columns="):
        read_all("hf:some/set:de-en", languages=("fr", "de"))


def test_a_hub_that_cannot_be_reached() -> None:
    with pytest.raises(CorpusError, match="Cannot load the data set no-such-user/no-such-set"):
        read_parallel("hf:no-such-user/no-such-set")


def test_bad_input(tmp_path: Path) -> None:
    path = folder(tmp_path, train=PAIRS)
    cases = [
        ({"place": tmp_path / "none"}, "There is no"),
        ({"place": path}, "say which is the source"),
        ({"place": path, "languages": ("en", "fr")}, "no counterpart"),
        ({"place": path, "languages": ("xx", "yy")}, "neither"),
        ({"place": path, "languages": ("en", "en")}, "two different names"),
        ({"place": path, "languages": "en"}, "two different names"),
        ({"place": path, "languages": ("en", "de"), "longest": 0}, "at least 1"),
        ({"place": path / "train.en"}, "neither .tsv nor .jsonl"),
    ]
    for arguments, message in cases:
        with pytest.raises(CorpusError, match=message):
            read_all(**arguments)
    (path / "train.de").write_text("eins\n")
    with pytest.raises(CorpusError, match=r"train\.de ends after 1 lines, its counterpart has 4"):
        read_all(path, languages=("en", "de"))
    (path / "train.de").write_bytes(b"eins\n\xff\xfe\n")
    with pytest.raises(CorpusError, match=r"train\.de:2 is not UTF-8"):
        read_all(path, languages=("en", "de"))
    (path / "train.de").write_text("\n\n\n\n")
    with pytest.raises(CorpusError, match="no usable pair"):
        read_all(path, languages=("en", "de"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "source\ttarget\none\n", ":2 has 1 columns"),
        ("a.jsonl", '{"source": "x", "target": "y"}\n{', ":2 is not JSON"),
        (
            "a.jsonl",
            '{"source": 3, "target": "y"}',
            r"a\.jsonl:1 has a number \(3\) in column 'source'; allowed is text",
        ),
        ("a.jsonl", '{"source": "x", "target": null}', r"a\.jsonl:1 has null in column 'target'; allowed is text"),
        ("a.jsonl", '{"translation": {"source": ["x"], "target": "y"}}', "a list in column 'source'"),
        ("a.jsonl", '{"source": "x"}', "no columns 'source' and 'target'; it has"),
        ("a.jsonl", '{"source": ' + "[" * 100_000, r"a\.jsonl:1 is JSON that is nested too deeply"),
        ("a.tsv", "x\ty\na\0b\tc\n", r"a\.tsv:2 has a NUL"),
        ("a.jsonl", "[]", "expected a JSON object"),
        ("a.tsv", "", "no usable pair"),
        ("a.tsv", "en\tde\nx\ty\n", r"a\.tsv:1 looks like names of columns, 'en' and 'de'"),
        ("a.tsv", "English\tGerman\nx\ty\n", "looks like names of columns"),
        ("a.tsv", "label\ttext\n0\ty\n", "looks like names of columns, 'label' and 'text'"),
        ("a.tsv", "source\tde\nx\ty\n", "looks like names of columns"),
        ("a.tsv", "Source\tTarget\nx\ty\n", "looks like names of columns"),
    ],
)
def test_bad_tables(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CorpusError, match=message):
        read_all(tmp_path / name)
