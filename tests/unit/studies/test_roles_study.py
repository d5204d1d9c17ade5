"""The record of roles keeps its word: the best heads are the best, the claims follow from the evidence."""

from __future__ import annotations

import json
from typing import Any

import pytest

import headcount as hc
import zoo
from headcount.corpora.sentences import Sentences
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.record import Record, Signature
from headcount.roles.evidence import Evidence
from headcount.roles.measure import Roles
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
    def seen(first: float, second: float) -> tuple[Evidence, ...]:
        halves = Interval(first, first - 0.1, first + 0.1), Interval(second, second - 0.1, second + 0.1)
        mean = (first + second) / 2
        return (Evidence("rare", "rarest", mean, 0.1, 0.5, 0.0, 1.0, 80, False, 0.5, 1.0, halves),)

    heads = [hc.Head("encoder", 0, index) for index in range(3)]
    grid = Roles(list(zip(heads, [seen(0.9, 0.3), seen(0.8, 0.85), seen(0.1, 0.9)], strict=True)), "object")
    (row,) = best_heads(grid)
    assert (row["head"], row["value"], row["held_out"]) == ("encoder.0.0", 0.3, True)
    assert (row["low"], row["high"]) == pytest.approx((0.2, 0.4))


def test_there_is_a_best_head_for_every_label(measured: tuple[Any, Record]) -> None:
    parts = json.loads(measured[1].to_json())["parts"]  # strict JSON: no NaN
    assert len(parts["syntax"]) == 8
    assert {(row["role"], row["label"]) for row in parts["best"]} == {
        (one["role"], one["label"]) for found in parts["evidence"].values() for one in found
    }
    assert sum(parts["relative"]["nsubj v->s"].values()) == parts["relations"]["nsubj"]


def test_claims_follow_from_the_evidence(measured: tuple[Any, Record]) -> None:
    claims = measured[1].parts["claims"]
    assert claims["positional"]["heads"] == {"encoder.1.2": "-1"}
    assert claims["positional"]["confidence"]["encoder.1.2"] == pytest.approx(0.9)
    assert claims["positional"]["above"] == 1
    assert claims["by_role"]["positional"] == 1
    assert claims["heads"] == 12
    assert claims["rare"]["two_rarest"] == 0.0  # first-layer heads look everywhere alike
    assert claims["rare"]["chance_two_rarest"] > 0


def test_relevance_goes_with_roles_of_the_same_model(measured: tuple[Any, Record]) -> None:
    model, record = measured
    scores = {head: value["value"] for head, value in record.parts["confidence"].items()}
    chosen, marks = Sentences(list(trees(2))), tokenizer()
    same = Record("score", Signature(weights=record.signature.weights), {"scores": scores})
    found = look(model, chosen, marks, relevance=same, resamples=20)
    assert found.parts["relevance"] == scores
    assert -1 <= found.parts["agreement"]["encoder"]["r"] <= 1
    with pytest.raises(UsageError, match="another model"):
        look(model, chosen, marks, relevance=Record("score", Signature(weights="x"), {"scores": scores}), resamples=20)
    with pytest.raises(UsageError, match="holds no scores"):
        look(model, chosen, marks, relevance=Record("ablate", Signature(), {}), resamples=20)


def test_the_head_that_is_shown_for_rare_tokens_is_above_chance() -> None:
    def row(value: float, low: float, role: str = "rare") -> dict[str, Any]:
        return {"role": role, "value": value, "low": low, "baseline": 0.2}

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
    assert hc.Record("roles", Signature(), found).parts == found
