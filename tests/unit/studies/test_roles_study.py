"""The record of roles keeps its word: the best heads are the best, the claims follow from the evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import zoo
from headcount.corpora.sentences import Sentences
from headcount.corpora.source import Source
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.head_roles.evidence import Evidence, HalvedEvidence
from headcount.head_roles.measure import Roles
from headcount.heads import Head
from headcount.record import Record, Signature
from headcount.record.results.score import Scoring
from headcount.statistics import Interval
from headcount.studies.roles import best_heads, look, persons, rare_head
from planted import at, planted, tokenizer, trees


def _before(ids: list[int]) -> Any:
    return at([max(1, query - 1) for query in range(len(ids))], len(ids), sharpness=0.9)


@pytest.fixture(scope="module")
def measured() -> tuple[Any, Record]:
    model, marks = zoo.build("bert", "eager"), tokenizer()
    chosen = [tree for tree in trees() if len(marks(tree.text)["input_ids"]) <= 60]
    with planted(model, {"encoder.1.2": _before}):
        return model, look(model, Sentences(chosen), marks, name="m", data="d", resamples=50, common=10)


def test_the_best_heads_are_chosen_on_one_half_and_measured_on_the_other() -> None:
    def seen(first: float, second: float) -> tuple[HalvedEvidence, ...]:
        halves = Interval(first, first - 0.1, first + 0.1), Interval(second, second - 0.1, second + 0.1)
        mean = (first + second) / 2
        verdict = (0.5, 0.0, 1.0, 80, False, 0.5, 1.0, False)
        return (HalvedEvidence("rare", "rarest", mean, 0.1, *verdict, halves, 37, 0.2, True),)

    heads = [Head("encoder", 0, index) for index in range(3)]
    grid = Roles(list(zip(heads, [seen(0.9, 0.3), seen(0.8, 0.85), seen(0.1, 0.9)], strict=True)), "object")
    (row,) = best_heads(grid)
    assert (row.head, row.value, row.held_out) == ("encoder.0.0", 0.3, True)
    assert (row.low, row.high) == pytest.approx((0.2, 0.4))
    assert (row.trials, row.baseline, row.below) == (37, 0.2, True)  # of the half, as the value


def test_there_is_a_best_head_for_every_label(measured: tuple[Any, Record]) -> None:
    parts = json.loads(measured[1].to_json())["parts"]  # strict JSON: no NaN
    assert len(measured[1].parts.syntax) == 8
    assert {(row["role"], row["label"]) for row in parts["best"]} == {
        (one["role"], one["label"]) for found in parts["evidence"].values() for one in found
    }
    assert sum(parts["relative"]["nsubj v->s"].values()) == parts["relations"]["nsubj"]


def test_claims_follow_from_the_evidence(measured: tuple[Any, Record]) -> None:
    paper = measured[1].parts.paper
    assert paper.positional.labels == {"encoder.1.2": "-1"}
    assert paper.positional.confidence["encoder.1.2"] == pytest.approx(0.9)
    assert paper.positional.above == 1
    assert paper.by_role["positional"] == 1
    assert paper.num_heads == 12
    assert paper.rare is not None
    assert paper.rare.two_rarest == 0.0  # first-layer heads look everywhere alike
    assert paper.rare.chance_two_rarest > 0


def test_relevance_goes_with_roles_of_the_same_model(measured: tuple[Any, Record]) -> None:
    model, record = measured
    scores = {head: interval.value for head, interval in record.parts.confidence.items()}
    chosen, marks = Sentences(list(trees(2))), tokenizer()
    same = Record("score", Signature(weights=record.signature.weights), Scoring("relevance", scores, {}))
    found = look(model, chosen, marks, relevance=same, resamples=20)
    assert found.parts.relevance == scores
    assert -1 <= found.parts.agreement["encoder"].r <= 1
    with pytest.raises(UsageError, match="another model"):
        look(
            model,
            chosen,
            marks,
            relevance=Record("score", Signature(weights="x"), Scoring("relevance", scores, {})),
            resamples=20,
        )
    with pytest.raises(UsageError, match="has no scores"):
        look(model, chosen, marks, relevance=Record("ablate", Signature(), {}), resamples=20)


def test_the_head_that_is_shown_for_rare_tokens_is_above_chance() -> None:
    def row(value: float, low: float, role: str = "rare") -> Evidence:
        return Evidence(role, "", value, 0.2, 0.5, low, 1.0, 80, holds=None)

    seen = {"encoder.0.0": [row(0.6, 0.1)], "encoder.0.1": [row(0.4, 0.3), row(0.9, 0.8, "positional")]}
    assert rare_head(seen) == "encoder.0.1", "the value of the other is higher and says nothing"
    with pytest.raises(UsageError, match="more than chance"):
        rare_head({"encoder.0.0": [row(0.6, 0.1)]})
    with pytest.raises(UsageError, match="No sentence has a rare token"):
        rare_head({"encoder.0.0": [row(0.6, 0.5, "positional")]})


def test_persons_of_subjects() -> None:
    def sentence(subject: str) -> Tree:
        text = f"{subject} ran"
        return Tree(
            text, (subject, "ran"), ((0, len(subject)), (len(subject) + 1, len(text))), (1, -1), ("nsubj", "root")
        )

    found = persons(Sentences([sentence(word) for word in ("I", "We", "you", "dogs", "He", "it")]))
    assert found == {"1": 2, "2": 1, "3": 3}
    assert persons(Sentences(["no trees here"])) == {}
    assert persons(Sentences([sentence("Ich"), sentence("Du")])) == {}, "no features, and not known to be English"


def test_persons_of_subjects_are_those_of_the_features(tmp_path: Path) -> None:
    """German subjects were all third person: `ich` is no English pronoun."""
    subjects = {"Ich": "Case=Nom|Person=1", "Wir": "Person=1", "Du": "Person=2|PronType=Prs", "Hunde": "_", "I": "_"}
    sentences = [
        f"1\t{word}\t_\t_\t_\t{features}\t2\tnsubj\t_\t_\n2\tlesen\t_\tVERB\t_\tPerson=2\t0\troot\t_\t_\n"
        for word, features in subjects.items()
    ]
    file = tmp_path / "german.conllu"
    file.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    assert persons(Source(str(file), None).sentences()) == {"1": 2, "2": 1, "3": 2}
