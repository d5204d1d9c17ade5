"""Measures of heads on the page: each is called what it is, and heads are known from every record that names them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import records
import subjects as made
from headcount.record import Record
from headcount.record.codec import encode
from headcount.report.figure import draw
from headcount.report.joined import RoleImportance
from headcount.report.overview import overview
from headcount.report.payload import payload
from headcount.report.section import all_tables, labelled_for, sections
from headcount.report.subject import subjects


def measures(*some: Record) -> list[dict[str, dict[str, Any]]]:
    """For each subject its measures by label."""
    data = payload(subjects(some))
    return [{measure["label"]: measure for measure in subject["measures"]} for subject in data["subjects"]]


def tiles(record: Record) -> list[str]:
    (subject,) = found = subjects([record])
    return [tile.answer for tile in overview(subject, payload(found)["subjects"][0]["heads"])]


def test_a_gate_is_between_0_and_1() -> None:
    """Its logit is not: means are 0.4 and logits -0.2 here."""
    ((label, measure),) = measures(records.gates())[0].items()
    assert label == "mean of its gate, l0"
    assert set(measure["values"]) == {0.4}


def test_only_a_change_of_quality_has_a_side_that_harms() -> None:
    ablation = made.ablation(made.ONE_LAYER)
    scores = {f"encoder.0.{index}": value for index, value in enumerate((-0.2, 0.0, 0.1, 0.2))}
    relevance = records.changed(made.score(made.ONE_LAYER, "relevance"), scores=scores)
    found = measures(ablation, relevance)[0]
    assert (found["change of BLEU without it"]["harm"], found["relevance score"]["harm"]) == (-1, 0)
    assert [measure["form"] for measure in found.values()] == ["diverging", "diverging"]
    loss = records.changed(ablation, metric="loss", higher_is_better=False)
    assert measures(loss)[0]["change of loss without it"]["harm"] == 1
    distance = records.changed(loss, metric="cosine distance", distance=True)
    assert measures(distance)[0]["change of cosine distance without it"]["harm"] == 0


def test_scores_with_other_arguments_are_other_measures() -> None:
    def relevance(model: str, rule: str) -> Record:
        record = made.score(made.ONE_LAYER, "relevance", model)
        return replace(record, signature=replace(record.signature, arguments={"score": "relevance", "rule": rule}))

    alone = measures(relevance("a", "ding"), made.score(made.ONE_LAYER, "gradient", "a"))
    assert [list(found) for found in alone] == [["relevance score", "gradient score"]]
    two = measures(relevance("a", "ding"), relevance("a", "attnlrp"))
    assert [list(found) for found in two] == [["relevance score, rule ding", "relevance score, rule attnlrp"]]
    both = subjects([relevance("a", "ding"), relevance("a", "attnlrp")])
    labels = [label for label, _ in labelled_for(sections["scores"], both)]
    assert labels == ["relevance, rule ding", "relevance, rule attnlrp"]
    roles = made.roles({"encoder.0": 4}, "a")
    compared = subjects([relevance("a", "ding"), relevance("a", "attnlrp"), roles])[0].first(RoleImportance)
    assert compared is not None
    assert {row.measure for row in compared.comparisons} == set(two[0]), "none replaces the other"
    apart = measures(relevance("a", "ding"), relevance("b", "attnlrp"))
    assert [list(found) for found in apart] == [["relevance score, rule ding"], ["relevance score, rule attnlrp"]]
    same = measures(relevance("a", "ding"), relevance("b", "ding"))
    assert [list(found) for found in same] == [["relevance score"], ["relevance score"]]


def test_shares_of_lines_are_of_all_heads() -> None:
    """Of one kind alone, half of its heads is a sixth of all."""
    data = payload(subjects([made.curves(made.even(2, 4))]))["subjects"][0]
    ends = {line["label"]: line["points"][-1] for line in data["curves"]}
    assert ends["by gradient"]["share"] == 1
    assert ends["by gradient, encoder only"]["removed"] == 8
    assert round(24 * ends["by gradient, encoder only"]["share"]) == 8
    pruned = made.pruned(made.even(2, 4))
    steps = [{**step, "share": step["removed"] / 8} for step in encode(pruned.parts)["curve"]]  # encoder heads only
    pruned = records.changed(pruned, curve=steps)
    line = payload(subjects([pruned]))["subjects"][0]["curves"][0]
    assert [point["share"] for point in line["points"]] == pytest.approx([0, 2 / 24])
    (table,) = [table for table in all_tables(sections["pruned"], [("a", pruned)]) if "each step" in table.title]
    assert [row[:2] for row in table.rows] == [[0, 0], [2, 100 * 2 / 24]]


def test_roles_of_some_heads_do_not_say_how_many_there_are() -> None:
    (answer, *_), (known, *_) = tiles(made.roles(made.even(2, 3, ("encoder",)))), tiles(made.ablation(made.even(2, 3)))
    assert answer == "6 attention heads of model-a were looked at in 2 encoder layers."
    assert known.startswith("model-a has 18 attention heads: ")


def test_the_histogram_of_early_stops_is_of_one_set_of_examples() -> None:
    ablation = made.ablation(made.ONE_LAYER)
    one_out = {head: {**row, "value": row["value"] - 5} for head, row in encode(ablation.parts)["one_out"].items()}
    early = records.changed(ablation, one_out=one_out)
    rows = {row["head"]: row["value"] for row in draw("ablation-histogram", [early]).rows}
    assert rows == {head: early.parts.value + row.difference for head, row in early.parts.one_out.items()}


def test_an_inspection_alone_says_what_the_model_is() -> None:
    answer = tiles(made.inspection())[0]
    assert answer == ("model-a is a LlamaModel with 36 attention heads in 12 decoder layers. It has 135M parameters.")


def test_a_sweep_alone_says_what_can_go() -> None:
    record = made.sweep(made.ONE_LAYER)
    answers = tiles(record)
    assert answers[0] == "model-a has 4 attention heads in 1 encoder layer."
    assert answers[3] == ("Of 1 model pruned by l0, the smallest has 2 of 4 heads and BLEU 29.0 instead of 30.0.")
    points = {name: {**point, "removed_heads": []} for name, point in encode(record.parts)["sweep"].items()}
    earlier = tiles(records.changed(record, sweep=points))
    assert earlier[0] == "", "a record of an earlier version does not say how many heads there were"
    assert earlier[3] == "Of 1 model pruned by l0, the smallest has 2 heads and BLEU 29.0 instead of 30.0."


def test_trained_models_of_a_random_choice_are_no_control() -> None:
    tradeoff = made.tradeoff(made.even(2, 4))
    points = [{**point, "way": "random"} for point in encode(tradeoff.parts)["points"]]
    data = payload(subjects([made.curves(made.even(2, 4)), records.changed(tradeoff, points=points)]))["subjects"][0]
    controls = [line["label"] for line in data["curves"] if line["control"]]
    assert controls
    assert all(label.startswith("by random ") for label in controls)
    ways = [line for line in data["curves"] if "seed" in line["label"]]
    assert {line["order"] for line in ways} == {"random"}
    assert {line["group"] for line in ways} == {line["label"].rpartition(", seed")[0] for line in ways}
