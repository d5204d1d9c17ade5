"""Tracing relevance: conserved on every architecture or refused with the reason, and nothing left behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import headcount as hc
import zoo
from behaviour import hooks, identical, outputs, weights
from headcount.errors import ModelError, UnknownName, UsageError
from headcount.probes.relevance.conservation import check, conserved, summary
from headcount.probes.relevance.rules.rule import members
from headcount.probes.relevance.trace import Relevance, Trace, traced
from headcount.sites.inputs import example_batch
from headcount.sites.running import evaluating

SLOPES = ("ding", "ding-product", "attnlrp")
# What a rule cannot follow, and a word of the reason.
REFUSED = {
    ("clip", "ding"): "two activations",
    ("clip", "zplus2019"): "two activations",
    ("clip", "alphabeta2021"): "two activations",
    ("clip", "attnlrp"): "does not add up",  # two towers: what crosses a cut of one is not all there is
    ("clip", "ding-product"): "does not add up",
    ("deberta-v2", "attnlrp"): "add_",
    ("mpnet", "attnlrp"): "add_",
    ("bloom", "attnlrp"): "baddbmm",
    **dict.fromkeys([(name, "alphabeta2021") for name in zoo.EAGER_ONLY], "in one function"),
    **{
        (name, "alphabeta2021"): "norm whose Jacobian"
        for name in ("llama", "mistral", "qwen2", "qwen3", "gemma3", "phi3", "t5", "mt5")
    },
}  # fmt: skip


def follow(model: nn.Module, batch: Any, **options: Any) -> tuple[Trace, Tensor, Relevance]:
    """Relevance of the last position's top-1 logit of every example."""
    with evaluating(model, gradients=True), traced(model, **options) as trace:
        output = next(value for value in model(**batch).values() if isinstance(value, Tensor))
    logits_BTC = output if output.dim() == 3 else output[:, None]
    place = logits_BTC.shape[1] - 1
    logits_B = trace.predictions(logits_BTC, place, logits_BTC[:, place].argmax(-1))
    return trace, logits_B.detach(), trace.relevance(logits_B, torch.ones(len(logits_B)))


@pytest.mark.parametrize("rule", members.names())
@pytest.mark.parametrize("architecture", zoo.ARCHITECTURES)
def test_every_architecture_is_conserved_or_refused(architecture: str, rule: str) -> None:
    model = zoo.build(architecture)
    batch, before = example_batch(model), outputs(model)
    if (architecture, rule) in REFUSED:
        with pytest.raises(ModelError, match=REFUSED[architecture, rule]):
            check(summary(conserved(*follow(model, batch, rule=rule))))
    else:
        trace, logits_B, found = follow(model, batch, rule=rule)
        result = summary(conserved(trace, logits_B, found))
        check(result)
        assert max(cut["error"] for cut in result["cuts"].values()) < 1e-4
        if rule not in SLOPES:
            assert all(cut["kept"] == pytest.approx(1, abs=1e-3) for cut in result["cuts"].values())
            assert result["absorbed"] == 0
        sites = hc.locate(model)
        assert set(found.heads) == {site.key for site in sites}
        assert all(found.heads[site.key].shape[1] == site.num_heads for site in sites)
    assert identical(outputs(model), before)
    assert hooks(model) == 0


@pytest.mark.parametrize("architecture", ["llama", "t5", "qwen3"])
def test_without_biases_nothing_is_lost(architecture: str) -> None:
    model = zoo.build(architecture)
    trace, logits_B, found = follow(model, example_batch(model))
    result = summary(conserved(trace, logits_B, found))
    assert result["absorbed"] == 0
    assert all(cut["kept"] == pytest.approx(1, rel=1e-5) for cut in result["cuts"].values())


def test_cuts_are_named_from_the_predictions_down(marian: nn.Module) -> None:
    trace, logits_B, found = follow(marian, example_batch(marian))
    names = list(summary(conserved(trace, logits_B, found))["cuts"])
    assert names == [*(f"decoder.{i}" for i in (2, 1, 0)), *(f"encoder.{i}" for i in (2, 1, 0)), "input"]


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_the_model_is_left_as_it_was(backend: str) -> None:
    model = zoo.build("bert", backend).train()
    before, batch = weights(model), example_batch(model)
    for options in ({}, {"rule": "alphabeta2021"}, {"bias": "redistribute"}):
        follow(model, batch, **options)
        with pytest.raises(RuntimeError, match="in the middle"):
            _interrupted(model, batch, options)
        broken, layer = {**batch, "attention_mask": batch["attention_mask"][:, :3]}, model.bert.encoder.layer[1]
        with pytest.raises(RuntimeError, match="size"), evaluating(model, gradients=True), traced(model, **options):
            layer(torch.zeros(2, 12, 64), broken["attention_mask"][:, None, None].float())
        assert identical(weights(model), before)
        assert model.config._attn_implementation == backend
        assert hooks(model) == 0
        assert model.training
        assert all("forward" not in module.__dict__ for module in model.modules())
        assert torch.overrides._get_current_function_mode() is None


def _interrupted(model: nn.Module, batch: Any, options: Any) -> None:
    with evaluating(model, gradients=True), traced(model, **options):
        model(**batch)
        raise RuntimeError("in the middle")


class _Odd(nn.Module):
    """A leaf that no rule knows."""

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(-1)


class _Wrapped(nn.Module):
    """Not a leaf: its own code uses a function that no rule knows."""

    def __init__(self, inner: nn.Module, function: Any) -> None:
        super().__init__()
        self.inner, self.function = inner, function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.inner(x))


class _Own(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(_: Any, slope: Tensor) -> Tensor:
        return slope * 2


def _wrap(part: str, function: Any) -> Any:
    def put(layer: Any) -> None:
        setattr(layer.output, part, _Wrapped(getattr(layer.output, part), function))

    return put


@pytest.mark.parametrize(
    ("put", "reason"),
    [
        (lambda layer: setattr(layer.intermediate, "intermediate_act_fn", _Odd()), "_Odd"),
        (_wrap("dense", lambda x: x.cumsum(-1)), "cumsum"),
        (_wrap("dense", _Own.apply), "gradient that the model"),
        (_wrap("dense", lambda x: x.mul_(2)), "mul_"),
        (_wrap("LayerNorm", lambda x: x.detach()), "is detached"),
    ],
)
def test_what_cannot_be_followed_is_refused(bert: Any, put: Any, reason: str) -> None:
    put(bert.bert.encoder.layer[1])
    for rule in members.names():
        with pytest.raises(ModelError, match=reason):
            follow(bert, example_batch(bert), rule=rule)


def test_what_relevance_does_not_pass_may_be_anything(bert: Any) -> None:
    """Queries only decide attention weights: an unknown function is no obstacle there, unless they get relevance."""
    attention = bert.bert.encoder.layer[1].attention.self
    attention.query = _Wrapped(attention.query, lambda x: x.cumsum(-1))
    follow(bert, example_batch(bert), rule="ding")
    with pytest.raises(ModelError, match="cumsum"):
        follow(bert, example_batch(bert), rule="attnlrp")


def test_numbers_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ModelError, match=r"cut encoder\.1: 50\.0%"):
        check({"cuts": {"encoder.1": {"error": 0.5}}})
    with pytest.raises(ModelError, match="nan"):
        check({"cuts": {"input": {"error": float("nan")}}})


def test_wrong_input(bert: nn.Module) -> None:
    batch = example_batch(bert)
    with pytest.raises(UnknownName, match="Did you mean 'ding'"):
        follow(bert, batch, rule="dings")
    with pytest.raises(UnknownName, match="Known: absorb, redistribute"):
        follow(bert, batch, bias="drop")
    with pytest.raises(UnknownName, match="Known: absorb"):
        follow(bert, batch, rule="attnlrp", bias="redistribute")
    with pytest.raises(UsageError, match="has its own treatment"):
        follow(bert, batch, rule="zplus2019", bias="absorb")
