"""Classes: what labels may be, and which class number each gets."""

from __future__ import annotations

import pytest

from headcount.corpora.classes import MAX_CLASSES, Classes
from headcount.errors import CorpusError


def numbered(*labels: str | int, known: tuple[str, ...] | None = None) -> tuple[list[int], tuple[str, ...]]:
    classes = Classes(known)
    for line, label in enumerate(labels, start=1):
        classes.add(label, f"a.tsv:{line}")
    return classes.numbered()


def test_class_numbers_stay_and_names_are_numbered_by_alphabet() -> None:
    assert numbered("2", " 0 ", 1) == ([2, 0, 1], ("0", "1", "2"))
    assert numbered("pos", "neg", "pos") == ([1, 0, 1], ("neg", "pos"))
    assert numbered("LABEL_10", "LABEL_2")[0] == [10, 2], "as transformers names classes that nobody named"


@pytest.mark.parametrize("label", ["-1", -1, "1.0", "+1", ".5", "1e3", "0.", "-0.5"])
@pytest.mark.parametrize("before", ["0", "good"])
def test_negative_and_decimal_labels_are_refused(label: str | int, before: str) -> None:
    """Formerly -1, 0, 1 became the classes 0, 1, 2, and 1.0 another class than 1."""
    with pytest.raises(CorpusError, match=r"a\.tsv:2 has the label .* class number \(0 to n - 1 .*\) or a class name"):
        numbered(before, label)


@pytest.mark.parametrize("label", [300_000_000, "300000000", "9" * 5000, MAX_CLASSES])
def test_a_number_too_large_for_a_class_is_refused_at_once(label: str | int) -> None:
    with pytest.raises(CorpusError, match=r"a\.tsv:1 has the label '.* n is at most 100000"):
        numbered(label)
    assert len(numbered(MAX_CLASSES - 1)[1]) == MAX_CLASSES


def test_numbers_and_names_are_not_mixed() -> None:
    with pytest.raises(CorpusError, match=r"a\.tsv:1 has the label '1', a\.tsv:3 has the label 'good': give either"):
        numbered("1", "2", "good")


def test_classes_that_a_model_knows() -> None:
    known = ("bad", "good")
    assert numbered("good", "bad", 1, "0", known=known) == ([1, 0, 1, 0], known)
    for label in ("fine", "2", "-1", "1.0", "9" * 5000):
        with pytest.raises(CorpusError, match=r"a\.tsv:1 .* the model knows bad, good \(class numbers 0 to 1\)"):
            numbered(label, known=known)
    assert numbered("0", "1", known=("0", "1"))[0] == [0, 1]


def test_a_model_whose_class_names_are_other_numbers_is_asked_by_name() -> None:
    """Formerly the label 1 was class number 1, which such a model calls 2."""
    assert numbered("1", 3, known=("1", "2", "3"))[0] == [0, 2]
    assert numbered("-1", "0", known=("-1", "0", "1"))[0] == [0, 1]
    with pytest.raises(CorpusError, match="'0'; the model knows 1, 2, 3\\."):
        numbered("0", known=("1", "2", "3"))
