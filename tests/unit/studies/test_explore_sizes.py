"""How many sentences `explore` masks heads on."""

from __future__ import annotations

import pytest

import zoo
from headcount.studies import explore


def test_the_largest_models_have_enough_sentences_for_a_long_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.build("gpt2")
    assert explore.affordable_sentences(model) == 128
    monkeypatch.setattr(explore, "_WORK", 1.0)
    assert explore.affordable_sentences(model) == 40
