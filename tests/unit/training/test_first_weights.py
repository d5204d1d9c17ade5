"""First weights: residual branches of a pre-norm model can begin small, and a saved folder remembers it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import laboratory
from headcount.training.preset import PRESETS
from headcount.training.transformer import Size, forget, new_translation_model, size_like


@pytest.fixture
def size() -> Size:
    return replace(PRESETS["small"].size, width=64, heads=2, inner=128)


@pytest.mark.parametrize("small", [True, False])
def test_the_end_of_a_branch_is_as_small_as_its_stack_is_deep(tmp_path: Path, size: Size, small: bool) -> None:
    model = new_translation_model(replace(size, small_branches=small), laboratory.vocabulary(tmp_path), seed=0)
    for stack, depth in ((model.model.encoder, 6), (model.model.decoder, 9)):
        weight = stack.layers[0].fc2.weight
        glorot = (6 / sum(weight.shape)) ** 0.5  # the largest weight of a uniform distribution
        assert weight.abs().max().item() == pytest.approx(glorot * (depth**-0.5 if small else 1.0), rel=0.01)


def test_a_saved_model_forgets_and_is_built_like_a_new_one(tmp_path: Path, size: Size) -> None:
    tokenizer = laboratory.vocabulary(tmp_path)
    model = new_translation_model(size, tokenizer, seed=0)
    model.save_pretrained(tmp_path / "model")
    assert size_like(tmp_path / "model") == size
    again = type(model).from_pretrained(tmp_path / "model")
    forget(again, seed=1)
    expected = new_translation_model(size, tokenizer, seed=1).state_dict()
    spread = {name: value.std() for name, value in again.state_dict().items() if name.endswith("fc2.weight")}
    assert all(torch.isclose(value, expected[name].std(), rtol=0.05) for name, value in spread.items())
