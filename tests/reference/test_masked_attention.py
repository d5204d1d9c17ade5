"""Masks and taps against attention written out as loops over examples, heads and queries, in float64."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

import headcount as hc
import zoo
from headcount.sites.inputs import example_batch


def slow_attention(
    states: Tensor,
    keys: Tensor,
    parts: dict[str, nn.Linear],
    xi: list[float],
    head_dim: int,
    allowed: Tensor,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """One attention layer by its definition: sum over heads of xi_h softmax(q k / sqrt(d)) V W_O,h, plus the bias.

    states [B, Q, W], keys [B, K, W], allowed [B, Q, K] -> output [B, Q, W], attention [B, H, Q, K]
    """
    output = torch.zeros_like(states)
    attention = torch.zeros(len(states), len(xi), states.shape[1], keys.shape[1], dtype=states.dtype)
    for b in range(len(states)):
        for h in range(len(xi)):
            rows = slice(h * head_dim, (h + 1) * head_dim)
            q = states[b] @ parts["q"].weight[rows].T + parts["q"].bias[rows]
            k = keys[b] @ parts["k"].weight[rows].T + parts["k"].bias[rows]
            v = keys[b] @ parts["v"].weight[rows].T + parts["v"].bias[rows]
            for i in range(states.shape[1]):
                scores = [float(q[i] @ k[j]) * scale if allowed[b, i, j] else -math.inf for j in range(keys.shape[1])]
                highest = max(scores)
                weights = [math.exp(score - highest) for score in scores]
                for j, weight in enumerate(weights):
                    attention[b, h, i, j] = weight / sum(weights)
                head = sum(attention[b, h, i, j] * v[j] for j in range(keys.shape[1]))
                output[b, i] += xi[h] * (parts["o"].weight[:, rows] @ head)
    return output + parts["o"].bias, attention


def captured(model: nn.Module, module: nn.Module, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """What entered an attention module (its states, and the states it looks at)."""
    seen: dict[str, Tensor] = {}

    def look(_: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
        seen["states"] = args[0] if args else kwargs["hidden_states"]
        keys = kwargs.get("key_value_states")
        seen["keys"] = seen["states"] if keys is None else keys

    handle = module.register_forward_pre_hook(look, with_kwargs=True)
    model(**batch)
    handle.remove()
    return seen


@torch.no_grad()
def test_encoder_layer_of_bert() -> None:
    model = zoo.build("bert", dtype=torch.float64)
    sites = hc.locate(model)
    site, xi = sites["encoder.1"], [1.0, 0.0, 0.25, -2.0]
    mask = sites.grid(1.0).replace(dict(zip(site.head_names(), xi, strict=True)))
    tokens = torch.tensor([[5, 6, 7, 8, 9], [9, 8, 7, 0, 0]])
    batch = {"input_ids": tokens, "attention_mask": (tokens > 0).long()}
    attention = model.bert.encoder.layer[1].attention
    seen = captured(model, attention.self, batch)
    parts = {"q": attention.self.query, "k": attention.self.key, "v": attention.self.value, "o": attention.output.dense}
    allowed = (tokens > 0)[:, None, :].expand(2, 5, 5)
    expected, probabilities = slow_attention(seen["states"], seen["keys"], parts, xi, 16, allowed, 0.25)

    with hc.masked(model, mask), hc.tapped(model, ("outputs", "attention")) as taps:
        model(**batch)
    found = taps["encoder.1"]
    torch.testing.assert_close(found["attention"], probabilities, rtol=0, atol=1e-12)
    output = attention.output.dense(found["outputs"].flatten(-2))  # a tap sees what the projection sees: masked heads
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)


@torch.no_grad()
def test_cross_attention_of_marian() -> None:
    model = zoo.build("marian", dtype=torch.float64)
    sites = hc.locate(model)
    site, xi = sites["cross.2"], [0.0, 1.0, 0.5, 1.0]
    mask = sites.grid(1.0).replace(dict(zip(site.head_names(), xi, strict=True)))
    source = torch.tensor([[5, 6, 7, 8], [9, 8, 0, 0]])
    batch = {
        "input_ids": source,
        "attention_mask": (source > 0).long(),
        "decoder_input_ids": torch.tensor([[2, 4, 5], [2, 7, 9]]),
    }
    module = model.model.decoder.layers[2].encoder_attn
    seen = captured(model, module, batch)
    parts = {"q": module.q_proj, "k": module.k_proj, "v": module.v_proj, "o": module.out_proj}
    allowed = (source > 0)[:, None, :].expand(2, 3, 4)
    expected, probabilities = slow_attention(seen["states"], seen["keys"], parts, xi, 16, allowed, 0.25)

    with hc.masked(model, mask), hc.tapped(model, ("outputs", "attention")) as taps:
        model(**batch)
    torch.testing.assert_close(taps["cross.2"]["attention"], probabilities, rtol=0, atol=1e-12)
    torch.testing.assert_close(module.out_proj(taps["cross.2"]["outputs"].flatten(-2)), expected, rtol=0, atol=1e-12)


def test_mask_gradients_against_finite_differences() -> None:
    """dL/dxi of every head on the float64 models, by central differences of the mask."""
    for architecture in ("bert", "marian", "bart"):
        model = zoo.build(architecture, dtype=torch.float64)
        batch = example_batch(model)
        heads = len(hc.locate(model).heads)

        def loss(mask: Tensor, model: nn.Module = model, batch: dict[str, Tensor] = batch) -> Tensor:
            with hc.masked(model, mask):
                return model(**batch).logits.tanh().pow(2).sum()

        mask = torch.ones(heads, dtype=torch.float64, requires_grad=True)
        loss(mask).backward()
        step, found = 1e-5, torch.zeros(heads, dtype=torch.float64)
        for head in range(heads):
            up, down = torch.ones(heads, dtype=torch.float64), torch.ones(heads, dtype=torch.float64)
            up[head] += step
            down[head] -= step
            with torch.no_grad():
                found[head] = (loss(up) - loss(down)) / (2 * step)
        torch.testing.assert_close(mask.grad, found, rtol=0, atol=1e-6 * float(found.abs().max()))
