"""Subjects: records of one model and the same data belong together, whatever the order in which they are given."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

import records
import subjects as made
from headcount.record import Record, Signature
from headcount.report.data import data_names
from headcount.report.figure import origin
from headcount.report.subject import subjects

SITES = made.ONE_LAYER


def on(data: str, record: Record, /, **arguments: str) -> Record:
    return replace(record, signature=replace(record.signature, data=data, arguments=arguments))


def data_by_study(given: list[Record]) -> set[frozenset[tuple[str, str]]]:
    return {
        frozenset((record.study, record.signature.data) for record in subject.records) for subject in subjects(given)
    }


@pytest.mark.parametrize("order", permutations(range(3)))
def test_a_record_joins_the_subject_of_its_data(order: tuple[int, ...]) -> None:
    here, there = on("here", made.ablation(SITES)), on("there", made.ablation(SITES))
    curves = on("chosen", made.curves(SITES), measured_on="there")
    given = [(here, there, curves)[place] for place in order]
    assert data_by_study(given) == {
        frozenset({("ablate", "here")}),
        frozenset({("ablate", "there"), ("curves", "chosen")}),
    }


def test_qualities_on_other_data_are_another_subject() -> None:
    given = [on("here", made.ablation(SITES)), on("chosen", made.curves(SITES), measured_on="there")]
    assert [subject.label for subject in subjects(given)] == ["model-a (data here)", "model-a (data there)"]
    assert len(subjects([given[0], on("", made.curves(SITES))])) == 1, "unknown data may be the same"
    assert len(subjects([given[0], on("train", made.score(SITES))])) == 1, "an estimate needs no data of its own"


def test_subjects_are_labelled_with_the_path_of_their_data_where_a_record_has_it() -> None:
    here, there = on("here", made.ablation(SITES)), on("there", made.ablation(SITES))
    evaluated = on("there", made.evaluation(), data="/texts/film test")
    assert [subject.label for subject in subjects([here, there, evaluated])] == [
        "model-a (data here)",
        "model-a (film test)",
    ]


def test_records_that_say_what_they_were_measured_on_name_both_of_their_data() -> None:
    curves = on("a1", made.curves(SITES), data="texts/film", measured_on="b2")
    measured = curves.parts.measured_on
    assert data_names([curves]) == {"a1": f"film {measured.chosen_on[-1].split}", "b2": f"film {measured.split}"}
    ablation = on("c3", replace(made.ablation(SITES), signature=Signature())).on_data("texts/film", "dev")
    assert data_names([ablation]) == {"c3": "film dev"}
    assert on("", ablation).on_data("texts/film") == on("", ablation), "no data"


def test_data_of_one_path_are_told_apart() -> None:
    some = [on(data, made.evaluation(), data=path) for data, path in (("a1", "x/film"), ("b2", "y/film"), ("c3", "z"))]
    assert data_names(some) == {"a1": "film a1", "b2": "film b2", "c3": "z"}


@pytest.mark.parametrize(
    ("split", "name"),
    [("film.tsv", "film.tsv"), ("the other half of film.tsv", "film.tsv, the other half"), ("dev", "film.tsv dev")],
)
def test_the_name_of_a_file_is_said_once(split: str, name: str) -> None:
    ablation = on("b2", made.ablation(SITES), data="texts/film.tsv")
    measured = {**records.MEASURED_ON, "split": split, "chosen_on": []}
    record = records.changed(ablation, measured_on=measured)
    assert data_names([record]) == {"b2": name}
    assert origin(record)["data"] == f"texts/{name}"


def test_subjects_of_the_same_data_are_told_apart_by_their_settings() -> None:
    given = [on("a1", made.ablation(SITES), metric=metric, early=False) for metric in ("accuracy", "f1")]
    labels = ["model-a (metric accuracy)", "model-a (metric f1)"]
    assert [subject.label for subject in subjects(given)] == labels
    elsewhere = [*given, on("b2", made.ablation(SITES), metric="f1", early=False, data="texts/film")]
    assert [subject.label for subject in subjects(elsewhere)] == [
        "model-a (data a1, metric accuracy)", "model-a (data a1, metric f1)", "model-a (film, metric f1)"
    ]  # fmt: skip


def test_no_hash_makes_a_label_too_long_for_its_place() -> None:
    """Labels ended in `inputs` or `chosen_on` and 40 to 64 hexadecimal digits."""
    settings = [
        {"sizes": [1, 2], "inputs": "ab" * 20, "steps": steps, "chosen_on": f"{steps}cd" * 10} for steps in (60, 90)
    ]
    given = [on("a1", made.tradeoff(SITES), **arguments) for arguments in settings]
    labels = ["model-a (steps 60, chosen_on 60cd60)", "model-a (steps 90, chosen_on 90cd90)"]
    assert [subject.label for subject in subjects(given)] == labels
    dev = on("60cd" * 10, made.evaluation(), data="texts/dev")
    assert subjects([*given, dev])[0].label == "model-a (steps 60, chosen_on dev)"


def test_no_sentences_make_a_label_too_long_for_its_place() -> None:
    """The labels of two records of example sentences were all these sentences."""
    given = [on("", made.examples(SITES, ["a"]), texts=["A sentence."] * count) for count in (2, 3)]
    assert [subject.label for subject in subjects(given)] == ["model-a #1", "model-a #2"]
