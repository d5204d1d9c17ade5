"""The CoNLL-U reader: what it understands, and what it says about what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.corpora.conllu import _check, _Word, read_conllu
from headcount.corpora.tree import Arc
from headcount.errors import CorpusError


def word(number: str, form: str, head: str = "0", relation: str = "root", *, tag: str = "NOUN", misc: str = "_") -> str:
    return "\t".join([number, form, form.lower(), tag, "_", "_", head, relation, "_", misc])


SENTENCE = [
    "# sent_id = 1",
    "# text = We don't sleep.",
    word("1", "We", "4", "nsubj:pass", tag="PRON"),
    word("2-3", "don't", "_", "_"),
    word("2", "do", "4", "aux"),
    word("3", "n't", "4", "advmod"),
    word("4", "sleep", misc="SpaceAfter=No"),
    word("4.1", "hidden", "_", "_"),
    word("5", ".", "4", "punct"),
]


def write(tmp_path: Path, *sentences: list[str], end: str = "\n\n") -> Path:
    path = tmp_path / "t.conllu"
    path.write_text("\n\n".join("\n".join(lines) for lines in sentences) + end, encoding="utf-8")
    return path


@pytest.mark.parametrize("end", ["\n\n", "\n", ""])
def test_words_text_and_tree(tmp_path: Path, end: str) -> None:
    (tree,) = read_conllu(write(tmp_path, SENTENCE, end=end))
    assert tree.text == "We don't sleep."
    assert tree.words == ("We", "do", "n't", "sleep", ".")
    assert [tree.text[start:stop] for start, stop in tree.spans] == ["We", "do", "n't", "sleep", "."]
    assert tree.heads == (3, 3, 3, -1, 3)
    assert tree.relations[0] == "nsubj"
    assert tree.tags[0] == "PRON"
    assert list(tree.arcs("nsubj", "advmod")) == [Arc(0, 3, "nsubj"), Arc(2, 3, "advmod")]
    assert len(list(tree.arcs())) == 4


def test_a_contraction_that_its_words_do_not_spell(tmp_path: Path) -> None:
    """French du = de + le: both words stand where `du` stands."""
    lines = [word("1-2", "du", "_", "_"), word("1", "de", "3", "case"), word("2", "le", "3", "det"), word("3", "pain")]
    (tree,) = read_conllu(write(tmp_path, lines))
    assert tree.text == "du pain"
    assert tree.spans == ((0, 2), (0, 2), (3, 7))


BAD = {
    "wrong columns": ([word("1", "a"), "2\tb"], ":2 has 2 columns"),
    "bad head": ([word("1", "a", "x")], ":1 has the head 'x'"),
    "bad word number": ([word("a", "a")], ":1 has the word number 'a'"),
    "bad word range": (
        [word("1-3", "ab", "_", "_"), word("1", "a"), word("2", "b", "1")],
        "is the word range 1-3 in a sentence of 2",
    ),
    "words out of order": ([word("1", "a"), word("3", "b", "1")], ":2 is word 3, expected 2"),
    "head out of range": ([word("1", "a"), word("2", "b", "7")], ":2 depends on word 7, but the sentence has 2"),
    "circle": ([word("1", "a", "2"), word("2", "b", "1")], "depends on itself"),
    "no words": (["# text = nothing"], "without words"),
    "several roots": ([word("1", "a"), word("2", "b"), word("3", "c", "1")], ":2 is a second root, 'b' besides 'a'"),
    "empty word": ([word("1", "a"), word("2", "", "1")], ":2 is word 2 without a form"),
}
MORE = [
    ("bad word number", [word("1", "a"), word("x.y", "b", "1")], ":2 has the word number 'x.y'"),
    ("bad word number", [word("1", "a"), word("1.", "b", "1")], ":2 has the word number '1.'"),
    ("bad word number", [word("9" * 5000, "a")], ":1 has the word number"),
    ("bad head", [word("1", "a", "9" * 5000)], ":1 has the head"),
    ("circle", [word("1", "a"), word("2", "b", "2")], ":2 depends on itself"),
    ("empty word", [word("1-2", " ", "_", "_"), word("1", "a"), word("2", "b", "1")], ":1 is word 1-2 without a form"),
    (
        "bad word range",
        [word("1-2", "ab", "_", "_"), word("1", "a"), word("2-3", "bc", "_", "_"), word("2", "b", "1")],
        ":3 is the word range 2-3 after word 1",
    ),
    (
        "bad word range",
        [word("1", "a"), word("1-2", "ab", "_", "_"), word("2", "b", "1")],
        ":2 is the word range 1-2 after",
    ),
]


@pytest.mark.parametrize(("reason", "lines", "message"), [*((name, *case) for name, case in BAD.items()), *MORE])
def test_malformed_sentences_are_errors_with_a_line_or_counted(
    reason: str, lines: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(CorpusError, match=message):
        read_conllu(write(tmp_path, lines, SENTENCE))
    bank = read_conllu(tmp_path / "t.conllu", on_error="skip")
    assert len(bank) == 1
    assert bank.skipped == {reason: 1}


def test_line_numbers_count_from_the_top_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"t\.conllu:12 has 1 columns"):
        read_conllu(write(tmp_path, SENTENCE, [word("1", "a"), "oops"]))


def test_checking_a_tree_walks_over_each_word_once() -> None:
    """In a chain each word depends on the next one: a walk to the root from every word would be quadratic."""
    reads = 0

    class Counted(_Word):
        def __getattribute__(self, name: str) -> object:
            nonlocal reads
            reads += name == "head"
            return super().__getattribute__(name)

    length = 500
    chain = [Counted("w", "X", index + 1, "dep", True, index) for index in range(length - 1)]
    _check([*chain, Counted("w", "X", -1, "root", True, length)], {}, "t.conllu:1", Path("t.conllu"))
    assert reads < 10 * length


def test_no_file_no_sentences_no_text(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no treebank"):
        read_conllu(tmp_path / "none.conllu")
    with pytest.raises(CorpusError, match="no sentence"):
        read_conllu(write(tmp_path, [], end=""))
    with pytest.raises(CorpusError, match="left out"):
        read_conllu(write(tmp_path, ["oops"]), on_error="skip")
    (tmp_path / "t.conllu").write_bytes(b"1\t\xff\n")
    with pytest.raises(CorpusError, match=":1 is not UTF-8"):
        read_conllu(tmp_path / "t.conllu")
