"""Agreement with ablation: a score that is ablation agrees, one that ranks the other way does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import headcount as hc
from games import game, one_layer
from headcount.errors import HeadcountError, UsageError
from headcount.heads import HeadGrid
from headcount.scores.score import Scores, score
from headcount.studies.agreement import agreement, overlaps
from headcount.studies.curves import CurvePlan, pruning_curves

WORTH = (2.0, 4.0, 1.0, 3.0)


def linear(on: Tensor) -> Tensor:
    return 10 - on @ on.new_tensor(WORTH)


def test_a_perfect_score_agrees_and_pruning_costs_what_the_heads_are_worth() -> None:
    model = one_layer()
    record = agreement(model, game(model, linear), methods=["attribution-patching", "random", "relevance"])
    parts = record.parts
    assert parts.spearman["attribution-patching"]["all"].r == pytest.approx(1)
    assert parts.spearman["random"]["all"].r < 1
    assert set(parts.refused) == {"relevance"}
    for row in parts.pruning["attribution-patching"]:
        expected = sum(sorted(WORTH)[: row.removed])
        assert row.change.difference == pytest.approx(expected, abs=1e-5)
        assert row.against_ablation.difference == pytest.approx(0, abs=1e-5)
    with pytest.raises(UsageError, match="besides ablation"):
        agreement(model, game(model, linear), methods=["ablation"])


def test_overlap_by_hand() -> None:
    exact = HeadGrid([(hc.Head("encoder", 0, index), value) for index, value in enumerate([4.0, 3, 2, 1])])
    other = HeadGrid([(hc.Head("encoder", 0, index), value) for index, value in enumerate([1.0, 4, 2, 3])])
    assert [(row.num_heads, row.overlap, row.chance) for row in overlaps(other, exact)] == [
        (1, 0.0, 0.25), (1, 0.0, 0.25), (2, 0.5, 0.5),
    ]  # fmt: skip
    assert [row.overlap for row in overlaps(exact, exact)] == [1.0, 1.0, 1.0]


def test_equal_heads_share_the_places_at_the_top() -> None:
    """In the order of the model, ablation without any effect would agree with a score that grows with the layer."""
    heads = [hc.Head("encoder", layer, index) for layer in range(5) for index in range(2)]
    exact = HeadGrid([(head, 0.0) for head in heads])
    deep = HeadGrid([(head, head.layer + head.index / 10) for head in heads])
    assert [row.overlap for row in overlaps(deep, exact)] == pytest.approx(
        [row.chance for row in overlaps(deep, exact)]
    )


def test_equal_heads_go_in_the_same_order_as_in_curves() -> None:
    """Heads 0 and 1, and 2 and 3, stand in for each other. One study removed the first two, the other the last two."""

    def loss(on: Tensor) -> Tensor:
        off = (on < 0.5).double()
        return 1 + 5 * off[:, 0] * off[:, 1] + off[:, 2] * off[:, 3]

    model = one_layer()
    data = game(model, loss)
    rows = agreement(model, data, methods=["random"]).parts.pruning["ablation"]
    (line,) = pruning_curves(model, data, plan=CurvePlan(orders=("ablation",), random=0, step=0.25)).parts.curves
    values = {point.removed: point.value for point in line.points}
    assert [row.value for row in rows] == [values[row.removed] for row in rows]
    assert line.points[2].tied == 2


def test_finished_scores_are_not_measured_again_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ablation comes first and takes longest: it was lost when a later score was interrupted."""
    model, methods = one_layer(), ["random", "shapley"]
    whole = agreement(model, game(model, linear), methods=methods).parts
    measured: list[str] = []

    def interrupted(name: str, *arguments: Any, **options: Any) -> Scores:
        measured.append(name)
        if name == "shapley" and measured.count(name) == 1:
            raise KeyboardInterrupt
        return score(name, *arguments, **options)

    monkeypatch.setattr("headcount.studies.agreement.score", interrupted)
    with pytest.raises(KeyboardInterrupt):
        agreement(model, game(model, linear), methods=methods, folder=tmp_path)
    resumed = agreement(model, game(model, linear), methods=methods, folder=tmp_path).parts
    assert measured == ["ablation", "random", "shapley", "shapley"]
    assert resumed == whole
    with pytest.raises(HeadcountError, match="other settings"):
        agreement(model, game(model, linear, rows=7), methods=methods, folder=tmp_path)
