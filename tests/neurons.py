"""Relevance neuron by neuron, as slow and as obvious as the definitions.

Every operation lists what each input adds to each output, and relevance goes back in these shares. No gradients of a
network, no batches, one prediction at a time.

Shapes: T tokens, I inputs, O outputs, Q queries, K keys, D head size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

Array = np.ndarray


class Neurons:
    """Neurons [T, width] with their values and the relevance that has arrived at them."""

    def __init__(self, value: Array) -> None:
        self.value = np.array(value, dtype=np.float64)
        self.relevance = np.zeros_like(self.value)


def stable(numbers: Array) -> Array:
    edge = 8 * np.finfo(np.float64).eps
    return np.where(numbers < 0, np.minimum(numbers, -edge), np.maximum(numbers, edge))


class Ding:
    """Definition 3, first case; attention weights are weights, activations are ignored, 1/std is a number."""

    def __init__(self, bias: str = "absorb") -> None:
        self.bias = bias
        self._back: list[Callable[[], None]] = []

    def backward(self) -> None:
        for step in reversed(self._back):
            step()

    def shares(self, terms_IO: Array, constant_O: Array) -> Array:
        """[I, O]: the share of each output's relevance that each input gets, from what it adds to the output."""
        total_O = terms_IO.sum(0) + (constant_O if self.bias == "absorb" else 0)
        return terms_IO / stable(total_O)

    def weighted(self, x: Neurons, weight_OI: Array, bias_O: Array | None) -> Neurons:
        """y_o = sum_i W_oi x_i + b_o, at every position."""
        bias = np.zeros(len(weight_OI)) if bias_O is None else bias_O
        y = Neurons(x.value @ weight_OI.T + bias)

        def back() -> None:
            for t in range(len(x.value)):
                terms_IO = weight_OI.T * x.value[t][:, None]
                x.relevance[t] += self.linear_shares(terms_IO, bias, x.value[t], weight_OI) @ y.relevance[t]

        self._back.append(back)
        return y

    def linear_shares(self, terms_IO: Array, bias_O: Array, x_I: Array, weight_OI: Array) -> Array:
        return self.shares(terms_IO, bias_O)

    def linear(self, x: Neurons, layer: Any) -> Neurons:
        return self.weighted(x, array(layer.weight), None if layer.bias is None else array(layer.bias))

    def norm(self, x: Neurons, layer: nn.LayerNorm) -> Neurons:
        weight, bias, width = array(layer.weight), array(layer.bias), x.value.shape[-1]
        mean, std = x.value.mean(-1), np.sqrt(x.value.var(-1) + layer.eps)
        y = Neurons((x.value - mean[:, None]) / std[:, None] * weight + bias)

        def back() -> None:
            for t in range(len(x.value)):
                slope_IO = (np.eye(width) - 1 / width) / std[t] * weight
                x.relevance[t] += self.shares(slope_IO * x.value[t][:, None], bias) @ y.relevance[t]

        self._back.append(back)
        return y

    def root_mean_square(self, x: Neurons, layer: Any) -> Neurons:
        size = np.sqrt((x.value**2).mean(-1, keepdims=True) + layer.variance_epsilon)
        return self.passing(x, x.value / size * array(layer.weight))

    def passing(self, x: Neurons, value: Array) -> Neurons:
        """Each neuron made of one neuron: an activation, a constant factor."""
        y = Neurons(value)

        def back() -> None:
            x.relevance += y.relevance

        self._back.append(back)
        return y

    def activation(self, x: Neurons, function: Callable[[torch.Tensor], torch.Tensor]) -> Neurons:
        return self.passing(x, array(function(torch.from_numpy(x.value))))

    def sum(self, a: Neurons, b: Neurons) -> Neurons:
        y = Neurons(a.value + b.value)

        def back() -> None:
            for place in np.ndindex(y.value.shape):
                first, second = self.sum_shares(a.value[place], b.value[place])
                a.relevance[place] += first * y.relevance[place]
                b.relevance[place] += second * y.relevance[place]

        self._back.append(back)
        return y

    def sum_shares(self, a: float, b: float) -> Array:
        return self.shares(np.array([[a], [b]]), np.zeros(1))[:, 0]

    def gate(self, a: Neurons, b: Neurons) -> Neurons:
        y = Neurons(a.value * b.value)

        def back() -> None:
            first, second = self.gate_shares(a.value, b.value)
            a.relevance += first * y.relevance
            b.relevance += second * y.relevance

        self._back.append(back)
        return y

    def gate_shares(self, a: Array, b: Array) -> tuple[Array | float, Array | float]:
        return 0.5, 0.5

    def attention(self, query: Neurons, key: Neurons, value: Neurons, hidden_QK: Array, scale: float) -> Neurons:
        """One head: [Q, D]; hidden_QK: where a query may not look."""
        weights_QK = softmax(np.where(hidden_QK, -np.inf, scale * query.value @ key.value.T))
        return self.looking(query, key, value, weights_QK, scale)

    def looking(self, query: Neurons, key: Neurons, value: Neurons, weights_QK: Array, scale: float = 1) -> Neurons:
        y = Neurons(weights_QK @ value.value)

        def back() -> None:
            for q in range(len(y.value)):
                for d in range(y.value.shape[1]):
                    terms_K = weights_QK[q] * value.value[:, d]
                    self.one_output(query, key, value, weights_QK, scale, (q, d), terms_K, y)

        self._back.append(back)
        return y

    def one_output(self, query: Neurons, key: Neurons, value: Neurons, weights_QK: Array, scale: float,
                   place: tuple[int, int], terms_K: Array, y: Neurons) -> None:  # fmt: skip
        shares_K = self.shares(terms_K[:, None], np.zeros(1))[:, 0]
        value.relevance[:, place[1]] += shares_K * y.relevance[place]

    def split(self, x: Neurons, heads: int) -> list[Neurons]:
        parts = [Neurons(part) for part in np.split(x.value, heads, axis=1)]

        def back() -> None:
            x.relevance += np.concatenate([part.relevance for part in parts], axis=1)

        self._back.append(back)
        return parts

    def join(self, parts: list[Neurons]) -> Neurons:
        y = Neurons(np.concatenate([part.value for part in parts], axis=1))

        def back() -> None:
            for part, relevance in zip(parts, np.split(y.relevance, len(parts), axis=1), strict=True):
                part.relevance += relevance

        self._back.append(back)
        return y


class DingProduct(Ding):
    """Definition 3, second case, where activations are multiplied; what attention weights get stays with them."""

    def gate_shares(self, a: Array, b: Array) -> tuple[Array, Array]:
        return a / stable(a + b), b / stable(a + b)

    def one_output(self, query: Neurons, key: Neurons, value: Neurons, weights_QK: Array, scale: float,
                   place: tuple[int, int], terms_K: Array, y: Neurons) -> None:  # fmt: skip
        q, d = place
        for k, term in enumerate(terms_K):
            of_product = term / stable(terms_K.sum()) * y.relevance[place]
            value.relevance[k, d] += value.value[k, d] / stable(weights_QK[q, k] + value.value[k, d]) * of_product


class AttnLRP(Ding):
    """Products half and half; softmax by its expansion: R_score = score (R_weight - weight sum of R_weight)."""

    def one_output(self, query: Neurons, key: Neurons, value: Neurons, weights_QK: Array, scale: float,
                   place: tuple[int, int], terms_K: Array, y: Neurons) -> None:  # fmt: skip
        q, d = place
        of_terms_K = terms_K / stable(terms_K.sum()) * y.relevance[place]
        value.relevance[:, d] += of_terms_K / 2
        scores_K = scale * key.value @ query.value[q]
        of_weights_K = of_terms_K / 2
        of_scores_K = scores_K * (of_weights_K - weights_QK[q] * of_weights_K.sum())
        for k, score in enumerate(scores_K):
            parts_D = scale * query.value[q] * key.value[k] / stable(score) * of_scores_K[k]
            query.relevance[q] += parts_D / 2
            key.relevance[k] += parts_D / 2


class ZPlus2019(Ding):
    """|x| max(W, eps) without bias; sums by absolute values; layer norm hands on; rescaled by linear layer."""

    def weighted(self, x: Neurons, weight_OI: Array, bias_O: Array | None) -> Neurons:
        y = Neurons(x.value @ weight_OI.T + (0 if bias_O is None else bias_O))

        def back() -> None:
            got = np.zeros_like(x.value)
            for t in range(len(x.value)):
                for o in range(len(weight_OI)):
                    parts_I = np.abs(x.value[t]) * np.maximum(weight_OI[o], 1e-6)
                    got[t] += parts_I / stable(parts_I.sum()) * y.relevance[t, o]
            x.relevance += got * (y.relevance.sum() / got.sum() if got.sum() else 1)

        self._back.append(back)
        return y

    def norm(self, x: Neurons, layer: nn.LayerNorm) -> Neurons:
        return self.passing(x, array(layer(torch.from_numpy(x.value))))

    def shares(self, terms_IO: Array, constant_O: Array) -> Array:
        return np.abs(terms_IO) / stable(np.abs(terms_IO).sum(0))


class AlphaBeta2021(Ding):
    """Half to the positive, half to the negative terms; Jacobians by autograd; constants spread evenly."""

    def shares(self, terms_IO: Array, constant_O: Array) -> Array:
        return np.stack([self._of_one(terms, c) for terms, c in zip(terms_IO.T, constant_O, strict=True)], axis=1)

    def _of_one(self, terms_I: Array, constant: float) -> Array:
        signs = []
        for sign in (1, -1):
            parts_I = np.maximum(sign * terms_I, 0) + max(sign * constant, 0) / len(terms_I)
            if parts_I.sum() > 8 * np.finfo(np.float64).eps:
                signs.append(parts_I / parts_I.sum())
        return np.mean(signs, axis=0) if signs else np.zeros_like(terms_I)

    def norm(self, x: Neurons, layer: nn.LayerNorm) -> Neurons:
        y = Neurons(array(layer(torch.from_numpy(x.value))))

        def back() -> None:
            for t, row_I in enumerate(x.value):
                slope_OI = array(torch.autograd.functional.jacobian(layer, torch.from_numpy(row_I)))
                terms_IO = slope_OI.T * row_I[:, None]
                x.relevance[t] += self.shares(terms_IO, y.value[t] - terms_IO.sum(0)) @ y.relevance[t]

        self._back.append(back)
        return y

    def one_output(self, query: Neurons, key: Neurons, value: Neurons, weights_QK: Array, scale: float,
                   place: tuple[int, int], terms_K: Array, y: Neurons) -> None:  # fmt: skip
        q, d = place
        real_K = np.flatnonzero(weights_QK[q])

        def output(row_D: torch.Tensor, keys_KD: torch.Tensor, column_K: torch.Tensor) -> torch.Tensor:
            return (scale * keys_KD @ row_D).softmax(0) @ column_K

        inputs = [torch.from_numpy(x) for x in (query.value[q], key.value[real_K], value.value[real_K, d])]
        slopes = torch.autograd.functional.jacobian(output, tuple(inputs))
        terms = np.concatenate([array(slope * x).ravel() for slope, x in zip(slopes, inputs, strict=True)])
        got = self._of_one(terms, y.value[place] - terms.sum()) * y.relevance[place]
        width, keys = len(query.value[q]), len(real_K)
        query.relevance[q] += got[:width]
        key.relevance[real_K] += got[width : width + keys * width].reshape(keys, width)
        value.relevance[real_K, d] += got[width + keys * width :]


RULES = {
    "ding": Ding,
    "ding-product": DingProduct,
    "attnlrp": AttnLRP,
    "zplus2019": ZPlus2019,
    "alphabeta2021": AlphaBeta2021,
}


class Followed:
    """One sentence through a model, op by op; `heads` holds the outputs of each site's heads."""

    def __init__(self, rule: Ding) -> None:
        self.rule = rule
        self.heads: dict[tuple[str, int], list[Neurons]] = {}

    def relevance(self) -> dict[tuple[str, int], Array]:
        return {site: np.array([head.relevance.sum() for head in heads]) for site, heads in self.heads.items()}

    def from_logit(self, states: Neurons, place: int, weight: Array, bias: float) -> float:
        """Start at one logit made of one position's states."""
        row = Neurons(states.value[place : place + 1])
        self.rule._back.append(lambda: states.relevance.__setitem__(place, states.relevance[place] + row.relevance[0]))
        logit = self.rule.weighted(row, weight[None], np.array([bias]))
        logit.relevance[:] = logit.value
        self.rule.backward()
        return float(logit.value[0, 0])

    def attend(
        self, site: tuple[str, int], x: Neurons, keys: Neurons, layers: list[Any], hidden_QK: Array, heads: int
    ) -> Neurons:
        """layers: query, key, value and output projection."""
        rule = self.rule
        query, key, value = (
            rule.split(rule.linear(states, layer), heads)
            for states, layer in zip((x, keys, keys), layers[:3], strict=True)
        )
        scale = 1 / np.sqrt(query[0].value.shape[1])
        self.heads[site] = [rule.attention(*three, hidden_QK, scale) for three in zip(query, key, value, strict=True)]
        return rule.linear(rule.join(self.heads[site]), layers[3])

    def feed_forward(self, x: Neurons, layer: Any) -> Neurons:
        inner = self.rule.activation(self.rule.linear(x, layer.fc1), layer.activation_fn)
        return self.rule.linear(inner, layer.fc2)

    def block(self, x: Neurons, norm: nn.LayerNorm, function: Callable[[Neurons], Neurons], first: bool) -> Neurons:
        """A residual block, norm before (first) or after it."""
        rule = self.rule
        return rule.sum(x, function(rule.norm(x, norm))) if first else rule.norm(rule.sum(x, function(x)), norm)


def bart_like(
    model: Any, rule: Ding, source: Array, target: Array, *, first: bool
) -> tuple[Followed, Neurons, list[Neurons]]:
    """Marian (norm after) or mBART (norm first), from the inputs of the first layers; returns also the inputs."""
    run, heads = Followed(rule), model.config.encoder_attention_heads
    x, y = Neurons(source), Neurons(target)
    inputs = [x, y]
    everything, future = (
        np.zeros((len(source), len(source)), bool),
        np.triu(np.ones((len(target), len(target)), bool), 1),
    )
    encoder, decoder = model.model.encoder, model.model.decoder

    def parts(attention: Any) -> list[Any]:
        return [attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj]

    for number, layer in enumerate(encoder.layers):
        x = run.block(
            x,
            layer.self_attn_layer_norm,
            lambda s, n=number, a=layer.self_attn: run.attend(("encoder", n), s, s, parts(a), everything, heads),
            first,
        )
        x = run.block(x, layer.final_layer_norm, lambda s, la=layer: run.feed_forward(s, la), first)
    if first:
        x = rule.norm(x, encoder.layer_norm)
    seen = np.zeros((len(target), len(source)), bool)
    for number, layer in enumerate(decoder.layers):
        y = run.block(
            y,
            layer.self_attn_layer_norm,
            lambda s, n=number, a=layer.self_attn: run.attend(("decoder", n), s, s, parts(a), future, heads),
            first,
        )
        y = run.block(
            y,
            layer.encoder_attn_layer_norm,
            lambda s, n=number, a=layer.encoder_attn: run.attend(("cross", n), s, x, parts(a), seen, heads),
            first,
        )
        y = run.block(y, layer.final_layer_norm, lambda s, la=layer: run.feed_forward(s, la), first)
    if first:
        y = rule.norm(y, decoder.layer_norm)
    return run, y, inputs


def llama_like(model: Any, rule: Ding, states: Array, attention: dict[int, Array]) -> tuple[Followed, Neurons]:
    """A decoder with root-mean-square norms first, gates, shared values; attention: each layer's weights [H, T, T]."""
    run, x = Followed(rule), Neurons(states)
    for number, layer in enumerate(model.model.layers):
        site = layer.self_attn
        normed = rule.root_mean_square(x, layer.input_layernorm)
        values = rule.split(rule.linear(normed, site.v_proj), model.config.num_key_value_heads)
        run.heads["decoder", number] = [
            rule.looking(normed, normed, values[head // site.num_key_value_groups], weights_QK)
            for head, weights_QK in enumerate(attention[number])
        ]
        x = rule.sum(x, rule.linear(rule.join(run.heads["decoder", number]), site.o_proj))
        normed = rule.root_mean_square(x, layer.post_attention_layernorm)
        gate = rule.activation(rule.linear(normed, layer.mlp.gate_proj), layer.mlp.act_fn)
        x = rule.sum(x, rule.linear(rule.gate(gate, rule.linear(normed, layer.mlp.up_proj)), layer.mlp.down_proj))
    return run, rule.root_mean_square(x, model.model.norm)


def softmax(scores: Array) -> Array:
    power = np.exp(scores - scores.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def array(tensor: Any) -> Array:
    return tensor.detach().cpu().double().numpy()
