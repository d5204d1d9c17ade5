"""Scoring: the record of a score."""

from __future__ import annotations

import pytest

import headcount as hc
import zoo
from headcount.report.sections.scores import SECTION
from headcount.studies.scoring import scoring
from tokens import sentences, word_tokenizer


@pytest.mark.filterwarnings("ignore:.*did not run on the data")
@pytest.mark.parametrize("method", ["gradient", "relevance", "confidence"])
def test_heads_that_do_not_run_are_not_ranked(method: str) -> None:
    task = hc.task("language-modelling", texts=sentences(6), tokenizer=word_tokenizer())
    record = scoring(zoo.idle_cross(), task, method=method)
    heads = [f"decoder.{layer}.{index}" for layer in (0, 1) for index in range(4)]
    for by_head in (record.parts.scores, record.parts.ranks, record.parts.low, record.parts.left_out):
        assert by_head is None or [*by_head] == heads
    assert "cross" not in SECTION.answer(record)
    assert "8 heads" in SECTION.answer(record)
