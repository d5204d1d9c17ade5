"""An export that gives NaN or infinity where the model does not is refused, whatever is compared."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headcount as hc
import zoo
from headcount.errors import VerificationError
from headcount.exports.agreement import compare_logits, compare_next_tokens, compare_outputs, largest_difference

LOGITS = np.random.default_rng(0).normal(size=(3, 5))


def damaged(value: float) -> np.ndarray:
    changed = LOGITS.copy()
    changed[1, 2] = value
    return changed


@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_is_the_largest_difference_wherever_it_is(place: int) -> None:
    pairs = [(LOGITS, LOGITS + 0.5)] * 3
    assert largest_difference(pairs) == pytest.approx(0.5)
    pairs[place] = (LOGITS, damaged(math.nan))
    assert largest_difference(pairs) == math.inf
    pairs[place] = (damaged(math.nan), damaged(math.nan))
    assert largest_difference(pairs) == math.inf


def test_the_same_infinity_is_no_difference() -> None:
    """Some models rule tokens out with a logit of minus infinity."""
    assert largest_difference([(damaged(-math.inf), damaged(-math.inf))]) == 0
    assert largest_difference([(damaged(-math.inf), damaged(math.inf))]) == math.inf
    assert largest_difference([(LOGITS, damaged(-math.inf))]) == math.inf


def test_every_comparison_sees_nan() -> None:
    about: dict[str, Any] = {"runtime": "runtime", "version": "1"}
    expected, computed = [LOGITS, LOGITS], [damaged(math.nan), LOGITS]
    logits = compare_logits(expected, computed, writes=True, **about)
    outputs = compare_outputs(expected[::-1], computed[::-1], **about)
    tokens = compare_next_tokens(zoo.build("llama"), [[5, 6]], lambda _: {7: math.nan, 8: math.nan}, **about)
    for agreement in (logits, outputs, tokens):
        assert agreement.difference == math.inf
        assert "are NaN or infinite" in str(agreement)


@pytest.mark.parametrize(("runtime", "architecture"), [("vllm", "llama"), ("openvino", "xlm-roberta")])
def test_weights_too_large_for_a_number_format_are_not_kept(runtime: str, architecture: str, tmp_path: Path) -> None:
    model = zoo.build(architecture)
    with torch.no_grad():
        weight = next(weight for name, weight in model.named_parameters() if "0.mlp.down" in name or "0.output" in name)
        weight[3, 5] = 7e4  # the largest number of float16 is 65504
    with pytest.raises(VerificationError, match="rounding to f16 alone makes outputs NaN or infinite"):
        hc.export(model, runtime, tmp_path / "half", dtype="f16")
    assert not list(tmp_path.iterdir())
