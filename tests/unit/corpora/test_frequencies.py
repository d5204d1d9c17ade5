"""Frequencies: counted, read from files, or what the tokenizer knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import laboratory
from headcount.corpora.frequencies import Frequencies, count_tokens, of_tokenizer, read_frequencies
from headcount.errors import CorpusError, UsageError
from planted import tokenizer
from tokens import word_tokenizer


def test_counts_and_ranks() -> None:
    marks = word_tokenizer()
    found = count_tokens(["w5 w5 w7", "w5 w7 w9"], marks, chunk=1)
    assert [found.count(token) for token in (5, 7, 9, 11)] == [3, 2, 1, 0]
    assert [found.rank(token) for token in (5, 7, 9, 11)] == [1, 2, 3, 4]
    table = found.table(12)
    assert [(table[0, token], table[1, token]) for token in (5, 7, 9, 11)] == [(3, 1), (2, 2), (1, 3), (0, 4)]


def test_equal_counts_share_a_rank() -> None:
    found = Frequencies({3: 5, 4: 5, 5: 1}, source="test")
    assert [found.rank(token) for token in (3, 4, 5, 6)] == [1, 1, 3, 4]


@pytest.mark.parametrize(("types", "common"), [(32_000, 500), (1000, 63), (711, 51), (200, 24), (1, 1)])
def test_common_types_scale_with_the_vocabulary(types: int, common: int) -> None:
    """The paper's 500 of 32,000; elsewhere the share of running text that Zipf's law gives these is about the same."""
    found = Frequencies({token: 1 / (1 + token) for token in range(types)}, source="Zipf")
    assert found.common == common

    def share(first: int, of: int) -> float:
        return sum(1 / rank for rank in range(1, first + 1)) / sum(1 / rank for rank in range(1, of + 1))

    assert types == 1 or abs(share(common, types) - share(500, 32_000)) < 0.05


def test_special_tokens_are_not_of_the_text() -> None:
    marks = tokenizer()
    found = count_tokens(["b", "a b"], marks)
    assert not [token for token in marks.all_special_ids if found.count(token) > 0]
    assert found.rank(marks.convert_tokens_to_ids("b")) == 1


def test_files(tmp_path: Path) -> None:
    marks = word_tokenizer()
    (tmp_path / "a.json").write_text(json.dumps({"w5": 10, "w6": 2, "elsewhere": 7}))
    (tmp_path / "a.tsv").write_text("w5\t10\nw6\t2\n")
    (tmp_path / "a.txt").write_text("w5 w5 w6\n")
    for name in ("a.json", "a.tsv", "a.txt"):
        found = read_frequencies(tmp_path / name, marks)
        assert found.rank(5) == 1
        assert found.rank(6) == 2
    (tmp_path / "bad.tsv").write_text("w5 ten\n")
    (tmp_path / "bad.json").write_text("[1]")
    (tmp_path / "other.json").write_text('{"x": 1}')
    for name, said in (
        ("bad.tsv", "bad.tsv:1"),
        ("bad.json", "JSON"),
        ("other.json", "another"),
        ("no.tsv", "no file"),
    ):
        with pytest.raises(CorpusError, match=said):
            read_frequencies(tmp_path / name, marks)
    for text, said in (
        ('{"w5": 1' + "0" * 5000 + "}", "too many digits"),
        ('{"w5": 1' + "0" * 400 + "}", "'w5', has the count"),
        ('{"w5": ' + "[" * 100_000, "nested too deeply"),
        ('{"w5": true}', "has the count 'True', expected a finite number"),
        ('{"w5": NaN}', "has the count 'nan'"),
    ):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(CorpusError, match=said):
            read_frequencies(tmp_path / "bad.json", marks)
    with pytest.raises(UsageError, match="No token"):
        Frequencies({}, source="nothing")


@pytest.mark.parametrize("name", ["a.csv", "A.CSV", "a.jsonl", "a.ndjson", "a.conll", "a.html"])
def test_tables_of_other_formats_are_not_counted_as_text(tmp_path: Path, name: str) -> None:
    """The names of columns, commas and digits would be the most frequent tokens."""
    (tmp_path / name).write_text("token,count\nw5,10\nw6,2\n")
    with pytest.raises(CorpusError, match=r"not plain text by its name.*tokens with their counts \(.tsv, .json\)"):
        read_frequencies(tmp_path / name, word_tokenizer())


@pytest.mark.parametrize(("name", "text"), [("A.TSV", "w5\t10\nw6\t2\n"), ("A.JSON", '{"w5": 10, "w6": 2}')])
def test_endings_of_files_may_be_in_capitals(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = read_frequencies(tmp_path / name, word_tokenizer())
    assert [found.count(token) for token in (5, 6)] == [10, 2]


def test_what_a_tokenizer_knows_agrees_with_what_is_counted(tmp_path: Path) -> None:
    """Byte-pair pieces are listed in the order they were merged: frequent ones first."""
    from scipy.stats import spearmanr

    marks = laboratory.vocabulary(tmp_path / "v", shared=False)
    known = of_tokenizer(marks)
    seen = count_tokens(laboratory.parallel()["train"]["source"], marks)
    spelled = {token: piece.strip("\u2581") for piece, token in marks.get_vocab().items()}
    # Single letters stand at the end of such a vocabulary, whatever their frequency.
    shared = [token for token in range(3, len(marks)) if seen.count(token) > 0 and len(spelled[token]) > 1]
    assert len(shared) > 50
    assert spearmanr([known.rank(token) for token in shared], [seen.rank(token) for token in shared]).statistic > 0.3
    plain = of_tokenizer(word_tokenizer())
    assert plain.rank(3) < plain.rank(90)
