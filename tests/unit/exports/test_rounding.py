"""What rounding explains is measured on the model, and a fault is more than that."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

import headcount as hc
import zoo
from headcount.errors import VerificationError
from headcount.exports import rounding
from headcount.exports.graphs import graph
from headcount.exports.graphs.check import check_batches
from headcount.exports.rounding import ROUNDED, explained
from headcount.exports.runtime import ExportedModel


def bound(dtype: str, *, scale: float = 1) -> float:
    model = zoo.build("llama")
    with torch.no_grad():
        model.lm_head.weight.mul_(scale)
    return explained(ExportedModel(model, None, "llama"), dtype)


def test_coarser_formats_explain_more() -> None:
    bounds = [bound(dtype) for dtype in ("f32", "f16", "bf16")]
    assert bounds == sorted(bounds)
    assert bound("f16") < bound("int8")


def test_the_bound_follows_the_model() -> None:
    """Ten times as large logits round ten times as far."""
    assert bound("f16", scale=10) / bound("f16") == pytest.approx(10, rel=0.5)


def test_the_bound_is_measured_on_what_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tokens round a hundred times as far as others: SmolLM2 was refused for one that only the check had."""
    subject = ExportedModel(zoo.build("llama"), None, "llama")
    rounded = copy.deepcopy(subject.model)
    with torch.no_grad():
        for weight in rounded.parameters():
            if weight.dim() > 1:
                weight.copy_(weight.bfloat16().float())
    largest = 0.0
    for batch in check_batches(subject):
        mask = batch["attention_mask"].bool()
        position_ids = (mask.long().cumsum(-1) - 1).clamp(min=0)
        with torch.no_grad():
            first, second = (
                model(**batch, position_ids=position_ids).logits.double().log_softmax(-1)[mask]
                for model in (subject.model, rounded)
            )
        largest = max(largest, float((first - second).abs().max()))
    monkeypatch.setattr(rounding, "_batches", lambda _: [])
    assert explained(subject, "bf16") == pytest.approx(rounding.FACTOR * largest, rel=1e-4)


@pytest.mark.parametrize("architecture", ["bloom", "gemma2"])
def test_padding_does_not_make_the_bound_infinite(architecture: str) -> None:
    """Their eager attention computes weights in float32, where the mask of the float64 copy overflows."""
    assert explained(ExportedModel(zoo.build(architecture), None, architecture), "f32") < 1e-3


def test_the_model_is_left_as_it_was() -> None:
    model = zoo.build("llama")
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    explained(ExportedModel(model, None, "llama"), "q8_0")
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize(("name", "steps"), [("int8", 127), ("q8_0", 127)])
def test_eight_bits_are_a_hundred_and_twenty_seven_steps(name: str, steps: int) -> None:
    weight = torch.randn(4, 32, generator=torch.Generator().manual_seed(0))
    error = (ROUNDED[name](weight) - weight).abs().max()
    assert 0 < error <= weight.abs().max() / steps / 2 + 1e-7


def test_a_small_fault_in_float32_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bias that is off by 8e-4: the fixed bound of before, 1e-3, did not see it."""
    build = graph.graphs

    def faulty(model: Any) -> list[graph.Graph]:
        twin = copy.deepcopy(model)
        with torch.no_grad():
            twin.classifier.bias[0] += 8e-4
        return build(twin)

    monkeypatch.setattr("headcount.exports.graphs.runtime.graphs", faulty)
    with pytest.raises(VerificationError, match="rounding to f32 explains at most"):
        hc.export(zoo.build("bert"), "onnx", tmp_path / "bert.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("dtype", "is_coarse"), [("int8", True), ("f32", False)])
def test_a_format_that_changes_many_greedy_choices_is_called_coarse(
    dtype: str, is_coarse: bool, tmp_path: Path
) -> None:
    """One large weight sets the scale of its matrix, and rounds all others to 0."""
    model = zoo.build("llama")
    with torch.no_grad():
        model.lm_head.weight[0, 0] = 300 * model.lm_head.weight.abs().max()
    result = hc.export(model, "onnx", tmp_path / "model.onnx", dtype=dtype)
    coarse = [note for note in result.notes if "is coarse for this model" in note]
    assert [note.partition("or try ")[2] for note in coarse] == (["f32 or q8_0"] if is_coarse else [])
