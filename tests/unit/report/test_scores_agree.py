"""Scores that agree on the layers alone: heads of a layer are not independent."""

from __future__ import annotations

import numpy as np
import pytest

import records
import subjects as made
from headcount.report.sections.scores import SECTION, _correlations


def test_scores_of_heads_know_their_layers() -> None:
    """Two layers that differ: sixteen heads say what two would. The third score lacks a head, and is paired alone."""
    noise = np.random.default_rng(1).normal(size=(3, 16))
    names = [f"encoder.{layer}.{index}" for layer in (0, 1) for index in range(8)]
    scores = [dict(zip(names, row + np.repeat([0.0, 9.0], 8), strict=True)) for row in noise.tolist()]
    del scores[2][names[0]]
    correlations = _correlations(scores)
    assert len(correlations) == 3
    assert all(row.r > 0.5 and row.low < 0 < row.high for row in correlations.values())


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 6, 9])
def test_no_head_comes_first_and_last(heads: int) -> None:
    scores = {f"encoder.0.{index}": float(index) for index in range(heads)}
    answer = SECTION.answer(records.changed(made.score(made.ONE_LAYER), scores=scores))
    named = [word.strip(".,") for word in answer.split() if word.startswith("encoder.")]
    assert len(named) == len(set(named)) == 2 * min(3, heads // 2)
