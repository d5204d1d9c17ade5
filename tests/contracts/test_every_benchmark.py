"""Benchmarks can begin: each has rows, and the model that several of them share is built."""

from __future__ import annotations

import importlib

import pytest
from benchmarks import laboratory
from benchmarks.__main__ import names


@pytest.mark.parametrize("name", names())
def test_a_benchmark_has_rows(name: str) -> None:
    assert callable(importlib.import_module(f"benchmarks.{name}").rows)


def test_the_model_of_the_laboratory_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """From few pairs: the whole corpus takes seconds."""
    pairs = {"train": {"source": ["a small house", "two words"], "target": ["ein kleines Haus", "zwei Wörter"]}}
    monkeypatch.setattr(laboratory, "read_parallel", lambda _: pairs)
    laboratory.tokenizer.cache_clear()
    try:
        assert laboratory.new_model().config.d_model == laboratory.TINY.size.width
    finally:
        laboratory.tokenizer.cache_clear()
