"""The record of roles keeps its word: the best heads are the best, the claims follow from the evidence."""

from __future__ import annotations

import json
from typing import Any

import pytest

import zoo
from headcount.corpora.sentences import Sentences
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.record import Record, Signature
from headcount.record.results.score import Scoring
from headcount.studies.roles import look, persons
from planted import at, planted, tokenizer, trees


def _before(ids: list[int]) -> Any:
    return at([max(1, query - 1) for query in range(len(ids))], len(ids), sharpness=0.9)


@pytest.fixture(scope="module")
def measured() -> tuple[Any, Record]:
    model, marks = zoo.build("bert", "eager"), tokenizer()
    chosen = [tree for tree in trees(60) if len(marks(tree.text)["input_ids"]) <= 60][:20]
    with planted(model, {"encoder.1.2": _before}):
        return model, look(model, Sentences(chosen), marks, name="m", data="d", resamples=50, common=10)


def test_the_best_heads_are_the_best(measured: tuple[Any, Record]) -> None:
    parts = json.loads(measured[1].to_json())["parts"]  # strict JSON: no NaN
    for row in parts["best"]:
        rivals = [
            one["value"]
            for head, found in parts["evidence"].items()
            for one in found
            if (one["role"], one["label"]) == (row["role"], row["label"]) and head.startswith(row["kind"])
        ]
        assert row["value"] == max(rivals)
    assert len(measured[1].parts.syntax) == 8
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
    with pytest.raises(UsageError, match="holds no scores"):
        look(model, chosen, marks, relevance=Record("ablate", Signature(), {}), resamples=20)


def test_persons_of_subjects() -> None:
    def sentence(subject: str) -> Tree:
        text = f"{subject} ran"
        return Tree(
            text, (subject, "ran"), ((0, len(subject)), (len(subject) + 1, len(text))), (1, -1), ("nsubj", "root")
        )

    found = persons(Sentences([sentence(word) for word in ("I", "We", "you", "dogs", "He", "it")]))
    assert found == {"1": 2, "2": 1, "3": 3}
    assert persons(Sentences(["no trees here"])) == {}
