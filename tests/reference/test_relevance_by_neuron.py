"""Relevance against the slow propagation of `neurons`: all rules, three kinds of attention, norms before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from headcount.probes.relevance.trace import traced
from headcount.sites.running import evaluating
from neurons import RULES, bart_like, llama_like

SIZES = {
    "vocab_size": 30, "d_model": 12, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 3,
    "decoder_attention_heads": 3, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "max_position_embeddings": 16,
    "pad_token_id": 0, "eos_token_id": 2, "bos_token_id": 1, "decoder_start_token_id": 2, "forced_eos_token_id": None,
}  # fmt: skip
SOURCE, TARGET = torch.tensor([[5, 9, 3, 17, 2]]), torch.tensor([[2, 8, 21, 4]])


def small(kind: str, *, biases: float, activation: str = "relu", seed: int = 0) -> Any:
    """Marian (norm after) or mBART (norm first) with weights that make every head matter; biases: their size."""
    torch.manual_seed(seed)
    config, model = {
        "marian": (tf.MarianConfig, tf.MarianMTModel),
        "mbart": (tf.MBartConfig, tf.MBartForConditionalGeneration),
    }[kind]
    made = model(config(**SIZES, activation_function=activation)).double().eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.dim() >= 2 and parameter.requires_grad:
                parameter.normal_(0, 0.5)
            elif name.endswith("bias"):
                parameter.uniform_(-biases, biases)
            elif "norm" in name:
                parameter.uniform_(0.5, 1.5)
    return made


def fast(
    model: nn.Module, rule: str, bias: str | None, place: int
) -> tuple[dict[Any, np.ndarray], float, Any, list[Any]]:
    with evaluating(model, gradients=True), traced(model, rule=rule, bias=bias) as trace:
        logits = model(input_ids=SOURCE, decoder_input_ids=TARGET, use_cache=False).logits
    chosen = logits[:, place].argmax(-1)
    logit = trace.predictions(logits, place, chosen)
    found = trace.relevance(logit, torch.ones(1))
    starts = [event.tensor for event in trace.events if event.what == "start"]
    return {site: value[0].numpy() for site, value in found.heads.items()}, logit.item(), found, [int(chosen), starts]


def slow(
    model: Any, rule: str, bias: str | None, place: int, chosen: int, starts: Any, kind: str
) -> tuple[Any, float, Any]:
    states = [tensor[0].detach().numpy() for tensor in starts]
    run, output, inputs = bart_like(model, RULES[rule](bias or "absorb"), *states, first=kind == "mbart")
    weight = model.lm_head.weight[chosen].detach().numpy()
    logit = run.from_logit(output, place, weight, float(model.final_logits_bias[0, chosen]))
    return run.relevance(), logit, inputs


CASES = [
    ("ding", "absorb"),
    ("ding", "redistribute"),
    ("ding-product", None),
    ("attnlrp", None),
    ("zplus2019", None),
    ("alphabeta2021", None),
]


@pytest.mark.parametrize("kind", ["marian", "mbart"])
@pytest.mark.parametrize(("rule", "bias"), CASES)
def test_every_rule_is_the_slow_propagation(kind: str, rule: str, bias: str | None) -> None:
    model = small(kind, biases=0.1, activation="gelu")
    for place in (0, 2, 3):
        found, logit, trace, (chosen, starts) = fast(model, rule, bias, place)
        expected, slow_logit, inputs = slow(model, rule, bias, place, chosen, starts, kind)
        assert logit == pytest.approx(slow_logit, rel=1e-9)
        assert set(found) == set(expected)
        assert len(found) == 6
        for site in expected:
            np.testing.assert_allclose(found[site], expected[site], rtol=0, atol=1e-6 * np.abs(expected[site]).max())
        arrived = sum(float(neurons.relevance.sum()) for neurons in inputs)
        assert float(trace.cuts[0, 0]) == pytest.approx(arrived, rel=1e-6, abs=1e-6 * abs(logit))
        if rule in ("zplus2019", "alphabeta2021") or bias == "redistribute":
            assert arrived == pytest.approx(logit, rel=1e-6)


@pytest.mark.parametrize("kind", ["marian", "mbart"])
def test_relevance_is_conserved_over_every_cut(kind: str) -> None:
    """Without biases, and with biases that hand on their share; with biases that keep it, with what they keep."""
    for biases, bias in ((0.0, "absorb"), (0.0, "redistribute"), (0.05, "redistribute"), (0.3, "absorb")):
        model = small(kind, biases=biases)
        for place in (1, 3):
            _, logit, found, _ = fast(model, "ding", bias, place)
            arrived = found.cuts[:, 0].numpy()
            assert len(arrived) == 5  # the input, two encoder and two decoder layers
            kept = found.constants[:, 0].numpy()
            np.testing.assert_allclose(arrived + kept, logit, rtol=1e-6)
            if bias == "redistribute" or not biases:
                np.testing.assert_allclose(arrived, logit, rtol=1e-6)
            else:
                assert np.abs(kept).max() > 1e-3 * abs(logit)


@pytest.mark.parametrize("rule", ["ding", "ding-product", "zplus2019"])
def test_root_mean_square_norms_gates_and_shared_values(rule: str) -> None:
    """Llama computes its norms in float32, whatever its weights are."""
    model = zoo.build("llama", dtype=torch.float64)
    ids = torch.tensor([[5, 9, 3, 17, 44]])
    with evaluating(model, gradients=True), traced(model, rule=rule) as trace:
        logits = model(input_ids=ids, use_cache=False).logits
    with torch.no_grad(), hc.tapped(model, "attention") as taps:
        model(input_ids=ids, use_cache=False)
    chosen = logits[:, 3].argmax(-1)
    found = trace.relevance(trace.predictions(logits, 3, chosen), torch.ones(1)).heads
    attention = {site.layer: weights[0].numpy() for site, weights in taps.items()}
    states = model.model.embed_tokens(ids)[0].detach().numpy()
    run, output = llama_like(model, RULES[rule](), states, attention)
    run.from_logit(output, 3, model.lm_head.weight[int(chosen)].detach().numpy(), 0.0)
    loose = 1e-3 if rule == "ding-product" else 1e-5  # u / (u + u') magnifies rounding where u is near -u'
    for site, expected in run.relevance().items():
        np.testing.assert_allclose(found[site][0].numpy(), expected, rtol=0, atol=loose * np.abs(expected).max())


def test_the_trick_is_a_gradient() -> None:
    """Activation x gradient of the network in which attention weights, 1/std and ratios are held still."""
    model = small("marian", biases=0.2)
    found, _, _, (chosen, _) = fast(model, "ding", "absorb", 3)

    class Still(nn.Module):
        def __init__(self, norm: nn.LayerNorm) -> None:
            super().__init__()
            self.norm = norm

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            std = (x.var(-1, unbiased=False, keepdim=True) + self.norm.eps).sqrt().detach()
            return (x - x.mean(-1, keepdim=True)) / std * self.norm.weight + self.norm.bias

    from transformers.models.marian import modeling_marian

    def still_attention(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **_: Any) -> Any:
        scores = query @ key.transpose(2, 3) * scaling
        weights = (scores if mask is None else scores + mask).softmax(-1).detach()
        return (weights @ value).transpose(1, 2).contiguous(), weights

    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.LayerNorm):
                setattr(module, name, Still(child))
    model.set_attn_implementation("eager")
    before, modeling_marian.eager_attention_forward = modeling_marian.eager_attention_forward, still_attention
    try:
        with hc.tapped(model, "outputs") as taps:
            logits = model(input_ids=SOURCE, decoder_input_ids=TARGET, use_cache=False).logits
    finally:
        modeling_marian.eager_attention_forward = before
    for site in hc.locate(model):
        (slope,) = torch.autograd.grad(logits[0, 3, chosen], taps[site.key], retain_graph=True)
        expected = (taps[site.key] * slope).sum((0, 1, 3)).detach().numpy()  # relu: f(x)/x is its derivative
        np.testing.assert_allclose(found[site.key], expected, rtol=0, atol=1e-9 * np.abs(expected).max())
