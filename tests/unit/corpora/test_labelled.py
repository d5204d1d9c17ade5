"""Labelled and plain text."""

from __future__ import annotations

import json
import warnings
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


def test_labels_that_begin_at_1_are_warned_of(tmp_path: Path) -> None:
    """Stars from 1 to 5: among the first texts none may have 5, which would be refused."""
    path = write(tmp_path, "a.tsv", "label\ttext", "1\tbad", "4\tgood", "2\tpoor", "5\tgreat")
    for classes in (None, [f"{stars} stars" for stars in range(1, 6)]):
        with pytest.warns(UserWarning, match="No text has the label 0: labels begin at 1"):
            assert read_labelled(path, classes=classes, limit=3).labels == [1, 4, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_labelled(path, classes=list("12345")).labels == [0, 3, 1, 4]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("sentence1", "sentence2"), ("premise", "hypothesis"), ("sentence", "question"), ("text", "text_pair"),
        ("text", "text2"), ("text", "hypothesis"), ("sentence", "sentence2"), ("text", "query"), ("text", "question"),
        ("text", "sentence"), ("content", "claim"),
    ],
)  # fmt: skip
def test_half_of_a_pair_is_read_only_if_it_is_named(tmp_path: Path, first: str, second: str) -> None:
    path = write(tmp_path, "a.tsv", f"label\t{second}\t{first}", "1\tb\ta")
    with pytest.raises(CorpusError, match=rf"a.tsv:2 has the columns {first} and {second}.*pair= \(--pair\)"):
        read_labelled(path)
    assert read_labelled(path, text=first).texts == ["a"]
    assert read_labelled(path, text=first).pairs is None
    assert read_labelled(path, pair=second).pairs == ["b"]


def test_the_second_text_of_a_pair_is_not_the_first_one_too(tmp_path: Path) -> None:
    """QNLI asks for --pair sentence; the usual column of a text is `sentence` as well."""
    path = write(tmp_path, "a.tsv", "label\tquestion\tsentence", "1\ta\tb")
    with pytest.raises(CorpusError, match=r"has the columns label, question; say which is the text"):
        read_labelled(path, pair="sentence")
    assert read_labelled(path, text="question", pair="sentence").texts == ["a"]
    with pytest.raises(CorpusError, match="Both texts of a pair would be the column 'sentence'"):
        read_labelled(path, text="sentence", pair="sentence")


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


def test_values_that_are_no_text_are_refused_by_file_line_and_column(tmp_path: Path) -> None:
    """Formerly read as the texts "None", "True", "['a']" ..."""
    good = {"text": "fine", "other": "too", "label": 1}
    for value, kind in (
        (None, "null"),
        (True, r"a boolean \(true\)"),
        (["a"], "a list"),
        ({"a": 1}, "an object"),
        (3, r"a number \(3\)"),
        (2.5, r"a number \(2.5\)"),
    ):
        for column in ("text", "other", "label"):
            if column == "label" and value == 3:
                continue  # the class number 3
            path = write(tmp_path, "a.jsonl", json.dumps(good), json.dumps({**good, column: value}))
            with pytest.raises(CorpusError, match=rf"a\.jsonl:2 has {kind} in column '{column}'; allowed is"):
                read_labelled(path, pair="other")
        path = write(tmp_path, "a.jsonl", json.dumps({"text": value}))
        with pytest.raises(CorpusError, match=rf"a\.jsonl:1 has {kind} in column 'text'; allowed is text"):
            read_plain(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": ' + "[" * 100_000, "a.jsonl:1 is JSON that is nested too deeply"),
        ('{"label": 1' + "0" * 5000 + "}", "a.jsonl:1 has a number of too many digits"),
        (r'{"text": "a\u0000b", "label": 1}', "a.jsonl:1, column 'text', has a NUL"),
        (r'{"text": "a\ud800b", "label": 1}', "a.jsonl:1, column 'text', has an unpaired surrogate"),
        ("[1]", "a.jsonl:1 is a list, expected a JSON object"),
    ],
)
def test_lines_of_json_that_cannot_be_used(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read_labelled(write(tmp_path, "a.jsonl", line))


@pytest.mark.parametrize("labels", [("-1", "0", "1"), ("1", "1.0"), ("0", "300000000")])
def test_labels_that_are_no_classes_are_refused_by_line(tmp_path: Path, labels: tuple[str, ...]) -> None:
    line = next(number for number, label in enumerate(labels, start=2) if label not in ("0", "1"))
    path = write(tmp_path, "a.tsv", "label\ttext", *(f"{label}\ta" for label in labels))
    with pytest.raises(
        CorpusError, match=rf"a\.tsv:{line} has the label '{labels[line - 2]}'. A label is a class number"
    ):
        read_labelled(path)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="two columns of the same name: text, label, text"):
        read_labelled(write(tmp_path, "a.tsv", "text\tlabel\ttext", "a\t1\tb"))


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


def test_lines_have_no_columns(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"a.txt has lines and no columns, but text= \(--text-column\) names"):
        read_plain(write(tmp_path, "a.txt", "one", "two"), text="body")


def test_plain_text_of_a_table(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"text": "one", "title": "1"}', "", '{"text": " ", "title": "2"}')
    assert read_plain(path) == ["one"]
    assert read_plain(path, text="title") == ["1", "2"]
    assert read_plain(write(tmp_path, "a.tsv", "id\ttext", "1\tone")) == ["one"]
    with pytest.raises(CorpusError, match="has no column 'body'; it has text, title"):
        read_plain(path, text="body")
    for name in ("sentence", "content"):  # as labelled text: the same file serves both
        assert read_plain(write(tmp_path, "b.tsv", f"label\t{name}", "1\tone")) == ["one"]
    with pytest.raises(CorpusError, match=r"columns label, body; say which is the text with text= \(--text-column\)"):
        read_plain(write(tmp_path, "c.tsv", "label\tbody", "1\tone"))


@pytest.mark.parametrize("name", ["bank.conllu", "texts.csv", "texts.json", "TEXTS.TSV"])
def test_formats_whose_lines_are_no_texts_are_no_plain_text(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("text,label\nA dog.,1\n")
    with pytest.raises(CorpusError, match="not plain text by its name"):
        read_plain(file)


def test_quotes_of_a_csv_writer_are_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text('text\tlabel\n"He said ""no"" twice."\t0\n"A ""b""."\t1\n')
    with pytest.warns(UserWarning, match=r"a\.tsv:2 has a cell in quotes with doubled quotes") as warned:
        read_labelled(file)
    assert len(warned) == 1
    file.write_text('text\tlabel\n"No," he said, "no."\t0\n"Fine"\t1\n""\t1\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_labelled(file)


def test_splits_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path, "train.tsv", "label\tsentence", "good\ta", "bad\tb")
    write(tmp_path, "validation.tsv", "label\tcontent", "good\tc")
    write(tmp_path, "test.txt", "plain text")
    assert read_labelled(tmp_path, split="train").labels == [1, 0]
    dev = read_labelled(tmp_path, split="dev", classes=("bad", "good"))
    assert (dev.labels, dev.classes) == ([1], ("bad", "good")), "a split without every class is numbered as the model"
    assert read_plain(tmp_path, split="test") == ["plain text"]
    with pytest.raises(CorpusError, match="name one with split="):
        read_labelled(tmp_path)
    with pytest.raises(UnknownName, match="train"):
        read_labelled(tmp_path, split="trian")
    with pytest.raises(CorpusError, match="knows no, yes"):
        read_labelled(tmp_path, split="dev", classes=("no", "yes"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"no \.tsv or \.jsonl files"):
        read_labelled(tmp_path / "empty", split="dev")


def test_a_split_under_two_names_is_refused_and_others_are_read(tmp_path: Path) -> None:
    for name in ("dev.tsv", "val.tsv", "test.jsonl"):
        write(tmp_path, name, *(["label\ttext", "1\ta"] if name.endswith("tsv") else ['{"label": 1, "text": "a"}']))
    for split in ("dev", "validation"):
        with pytest.raises(CorpusError, match=r"has dev\.tsv and val\.tsv for the split dev"):
            read_labelled(tmp_path, split=split)
    assert read_labelled(tmp_path, split="test").texts == ["a"]
    write(tmp_path, "valid.txt", "a")
    assert read_plain(tmp_path, split="dev") == ["a"]
    write(tmp_path, "dev.txt", "b")
    with pytest.raises(CorpusError, match=r"has dev\.txt and valid\.txt for the split dev"):
        read_plain(tmp_path, split="dev")


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
        read_plain("hf:glue:sst2", split="dev", text="body")
    with pytest.raises(CorpusError, match=r"row 0 has a number \(0\) in column 'idx'"):
        read_plain("hf:glue:sst2", split="dev", text="idx")


def test_classes_of_the_hub_and_of_the_model_are_matched_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entailment is class 0 of MNLI and class 2 of many models: by number, their accuracy would be that of chance."""
    import datasets

    names = ["entailment", "neutral", "contradiction"]
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=names)})
    rows = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [0, 1, 2]}, features=features)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: datasets.DatasetDict({"dev": rows}))
    model = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_labelled("hf:mnli", classes=model).labels == [2, 1, 0]
        assert read_labelled("hf:mnli", classes=names).labels == [0, 1, 2]
        assert read_labelled("hf:mnli").labels == [0, 1, 2]
        assert read_labelled("hf:mnli", classes=("0", "1", "2")).labels == [0, 1, 2]
    with pytest.warns(UserWarning, match="labels are taken by number"):
        assert read_labelled("hf:mnli", classes=("no", "perhaps", "yes")).labels == [0, 1, 2]
