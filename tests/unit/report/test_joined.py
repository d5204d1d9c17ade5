"""Roles beside importance: by hand, on planted heads, and where a side is missing."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import records
import subjects as made
from headcount.record import Record
from headcount.report.html import page
from headcount.report.joined import joined
from headcount.report.section import sections
from headcount.report.sections import role_importance
from headcount.report.subject import subjects

SITES = made.even(2, 4, ("encoder",))
HEADS = made.names(SITES)


def importance(values: list[float], *, weights: str = "a1b2c3") -> Record:
    record = made.score(SITES)
    signature = replace(record.signature, weights=weights)
    scored = records.changed(record, scores=dict(zip(HEADS, map(float, values), strict=True)))
    return replace(scored, signature=signature)


def roles(held: dict[str, str]) -> Record:
    record = made.roles(SITES)
    own = {head: [made.evidence(held[head], "x", 0.9)] if head in held else [] for head in HEADS}
    return records.changed(record, roles=own)


def test_numbers_are_those_of_the_heads() -> None:
    found = joined([roles({HEADS[0]: "positional", HEADS[5]: "delimiter"}), importance([8, 1, 2, 3, 4, 9, 5, 6])])
    assert found is not None
    paper, any_role = found.parts.comparisons
    assert (paper.group, paper.kind, paper.num_with_role, paper.num_heads) == ("of the paper", "encoder", 1, 8)
    assert paper.mean_with == 8
    assert paper.mean_without == pytest.approx(30 / 7)
    assert paper.difference.value == pytest.approx(8 - 30 / 7)
    assert (paper.top, paper.top_with_role, paper.top_expected) == (2, 1, pytest.approx(2 / 8))
    assert paper.within_layers.value == pytest.approx(8 - (1 + 2 + 3) / 3)  # the other layer has no such head
    assert (any_role.num_with_role, any_role.top_with_role) == (2, 2)
    assert any_role.difference.low <= any_role.difference.value <= any_role.difference.high
    assert any_role.correlation.r > 0.5
    json.dumps(found.to_plain(), allow_nan=False)


def test_within_layers_needs_a_layer_with_both() -> None:
    found = joined([roles(dict.fromkeys(HEADS[:4], "positional")), importance([8, 1, 2, 3, 4, 9, 5, 6])])
    assert found is not None
    assert np.isnan(found.parts.comparisons[0].within_layers).all()
    assert "not defined: no layer has heads with and without one" in role_importance.SECTION.answer(found)
    json.dumps(found.to_plain(), allow_nan=False)


def test_heads_that_are_equally_important_are_in_the_top_together() -> None:
    """Else those of the lowest layer would be the most important ones, and roles are often there."""
    found = joined([roles(dict.fromkeys(HEADS[:3], "positional")), importance([0, 0, 0, 0, 0, 0, 0, 5])])
    assert found is not None
    paper = found.parts.comparisons[0]
    assert (paper.top, paper.top_with_role, paper.top_expected) == (8, 3, pytest.approx(3))


def test_what_is_lost_counts_whichever_way_the_metric_goes() -> None:
    record = made.ablation(SITES)
    effects = {head: replace(record.parts.one_out[head], difference=float(at)) for at, head in enumerate(HEADS)}
    loss = records.changed(record, one_out=effects, metric="loss", higher_is_better=False)
    bleu = records.changed(loss, metric="BLEU", higher_is_better=True)
    planted = roles({HEADS[-1]: "rare", HEADS[-2]: "syntactic"})
    for one, top in ((loss, 2), (bleu, 0)):
        found = joined([planted, one])
        assert found is not None
        assert found.parts.comparisons[0].top_with_role == top


def test_a_side_that_is_missing_or_of_another_model() -> None:
    planted, values = roles({HEADS[0]: "positional"}), [float(value) for value in range(8)]
    assert joined([planted]) is None
    assert joined([importance(values)]) is None
    assert joined([planted, importance(values, weights="other")]) is None
    assert joined([roles({}), importance(values)]) is None  # no head to compare with
    assert joined([roles(dict.fromkeys(HEADS, "rare")), importance(values)]) is None


def test_records_of_other_weights_under_the_same_name_are_of_another_model() -> None:
    planted, values = roles({HEADS[0]: "positional"}), [float(value) for value in range(8)]
    found = subjects([planted, importance(values, weights="retrained")])
    assert [len(subject.records) for subject in found] == [1, 1]
    assert "retrai" in found[1].label
    (together,) = subjects([planted, importance(values, weights="")])  # unknown
    assert len(together.records) > 1


def test_the_page_says_it_with_its_numbers() -> None:
    given = [roles({HEADS[0]: "positional", HEADS[5]: "delimiter"}), importance([8, 1, 2, 3, 4, 9, 5, 6])]
    (subject,) = subjects(given)
    section = sections["role-importance"]
    (record,) = [record for record in subject.records if section.fits(record)]
    answer = section.answer(record)
    assert answer.startswith("1 of the 2 most important encoder heads has one of the paper's roles (0.2 by chance)")
    assert "gradient score" in answer
    assert "Are heads with a role more important?" in page(given)


def test_a_distance_is_not_tested() -> None:
    record = made.ablation(SITES)
    distance = records.changed(record, distance=True, metric="cosine distance")
    section = sections["ablation"]
    assert "significantly" in section.answer(record)
    assert "A distance is never negative" in section.answer(distance)
    (table,) = section.tables([("a", distance)])
    assert all(row[-2:] == [None, None] for row in table.rows)
    alone = sections["alone"]
    assert "significantly" in alone.answer(record)
    assert "significantly" not in alone.answer(distance)
    assert any(column.name == "corrected p" for column in alone.tables([("a", record)])[0].columns)
    assert not any(column.name == "corrected p" for column in alone.tables([("a", distance)])[0].columns)


def test_one_of_several_distances_alike_does_not_move_the_output_most() -> None:
    """Of heads whose intervals overlap, one has the largest distance by chance."""
    alike = {
        head: replace(made.ablation(SITES).parts.one_out[head], difference=1.0, low=0.5, high=1.5) for head in HEADS
    }
    apart = alike | {HEADS[3]: replace(alike[HEADS[3]], difference=9.0, low=8.0, high=10.0)}
    for effects, words in ((alike, "seems to move"), (apart, "moves")):
        record = records.changed(made.ablation(SITES), distance=True, higher_is_better=False, one_out=effects)
        assert f"which {words} it most" in sections["ablation"].answer(record)
        assert f"the output {words} most" in page([record])
