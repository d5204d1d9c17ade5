"""alphabeta2021: alpha = beta = 1/2, as in the later code of Voita and colleagues.

Every output is written as a sum of its inputs times their slopes (the Jacobian, of layer norm and of attention too) and
a constant. Half of its relevance goes to the positive terms in proportion, half to the negative ones; if one sign is
missing, all to the other. The constant counts with its sign, and its share is spread evenly over the inputs.
Shapes: O outputs, I inputs, Q queries, K keys, D and E head size.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear

from headcount.probes.relevance.carry import NormArguments, tiny
from headcount.probes.relevance.rules.carried import Carried
from headcount.probes.relevance.rules.rule import Untreated
from headcount.probes.relevance.shares import shared

ALPHA = BETA = 0.5
BLOCK = 1 << 21  # numbers of a norm's Jacobians at once


class AlphaBeta2021(Carried):
    name = "alphabeta2021"
    backend = "sdpa"  # attention in one function: its Jacobian is that of the whole

    def affine(self, x: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        bias = weight_OI.new_zeros(len(weight_OI)) if bias_O is None else bias_O
        plus, minus = x.detach().clamp_min(0), x.detach().clamp_max(0)
        up, down = weight_OI.clamp_min(0), weight_OI.clamp_max(0)
        above, below = _parts(
            linear(plus, up, bias.clamp_min(0)) + linear(minus, down),
            linear(plus, down, bias.clamp_max(0)) + linear(minus, up),
        )

        def sharing(relevance: Tensor) -> tuple[Tensor]:
            to_plus, to_minus = relevance * above, relevance * below
            even = (to_plus @ bias.clamp_min(0) + to_minus @ bias.clamp_max(0))[..., None] / x.shape[-1]
            return (plus * (to_plus @ up + to_minus @ down) + minus * (to_plus @ down + to_minus @ up) + even,)

        return shared(lambda x: linear(x, weight_OI, bias_O), sharing, x)

    def norm(self, x: Tensor, norm: NormArguments) -> Tensor:
        if len(norm["shape"]) != 1:
            raise Untreated("layer norm over several dimensions")
        core = _Norm(x.detach().flatten(0, -2), norm)
        return shared(core.output_NO.view_as, core.share, x)

    def sum(self, a: Tensor, b: Tensor) -> Tensor:
        left, right = a.detach(), b.detach()
        above, below = _parts(left.clamp_min(0) + right.clamp_min(0), left.clamp_max(0) + right.clamp_max(0))

        def sharing(relevance: Tensor) -> tuple[Tensor, ...]:
            parts = [relevance * (t.clamp_min(0) * above + t.clamp_max(0) * below) for t in (left, right)]
            return parts[0].sum_to_size(a.shape), parts[1].sum_to_size(b.shape)

        return shared(lambda a, b: a + b, sharing, a, b)

    def factor(self, value: Tensor, name: str) -> Tensor:
        raise Untreated(f"{name}, part of a norm whose Jacobian it does not know (it knows torch's layer_norm)")

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        raise Untreated("attention that is not computed by scaled_dot_product_attention")

    def attention(self, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        core = _Attention(query.detach(), key.detach(), value.detach(), **options)
        return shared(lambda *_: core.output, core.share, query, key, value)


class _Attention:
    """Attention at one input, with the terms of each output [Q, D]: of values, its query, keys, and a constant."""

    def __init__(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None, causal: bool
    ) -> None:
        self.scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        self.query, self.key, self.value = query, key, value
        scores_QK = self.scale * query @ key.transpose(-1, -2)
        if causal:
            scores_QK = scores_QK.masked_fill(scores_QK.new_ones(scores_QK.shape[-2:]).triu(1).bool(), -torch.inf)
        if mask is not None:
            scores_QK = scores_QK.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores_QK + mask
        self.weights_QK = scores_QK.softmax(-1).nan_to_num(0)  # a query of padding may have no key
        self.output = self.weights_QK @ value
        self.real_QK = (self.weights_QK > 0).to(value.dtype)
        self.count_Q = query.shape[-1] * (1 + self.real_QK.sum(-1)) + self.real_QK.sum(-1)
        self._settle()

    def _pull(self) -> tuple[Tensor, Tensor]:
        """[Q, K, D] weight x (value - output), and [Q, K, E] query x key: a key's terms are their products."""
        weights_QK1 = self.weights_QK[..., None]
        pull_QKD = weights_QK1 * (self.value[..., None, :, :] - self.output[..., None, :])
        match_QKE = self.scale * self.query[..., None, :] * self.key[..., None, :, :]
        return pull_QKD, match_QKE

    def _settle(self) -> None:
        pull_QKD, match_QKE = self._pull()
        self.turn_QDE = pull_QKD.transpose(-1, -2) @ match_QKE  # terms of the query
        self.constant_QD = -2 * self.turn_QDE.sum(-1)
        up_QK1, down_QK1 = match_QKE.clamp_min(0).sum(-1, True), match_QKE.clamp_max(0).sum(-1, True)
        pull_up, pull_down = pull_QKD.clamp_min(0), pull_QKD.clamp_max(0)
        plus = (pull_up * up_QK1 + pull_down * down_QK1).sum(-2)
        minus = (pull_up * down_QK1 + pull_down * up_QK1).sum(-2)
        plus = plus + self.weights_QK @ self.value.clamp_min(0) + self.turn_QDE.clamp_min(0).sum(-1)
        minus = minus + self.weights_QK @ self.value.clamp_max(0) + self.turn_QDE.clamp_max(0).sum(-1)
        self.above, self.below = _parts(plus + self.constant_QD.clamp_min(0), minus + self.constant_QD.clamp_max(0))

    def share(self, relevance_QD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Relevance of query, key and value."""
        plus_QD, minus_QD = relevance_QD * self.above, relevance_QD * self.below
        spread_QD = plus_QD * self.constant_QD.clamp_min(0) + minus_QD * self.constant_QD.clamp_max(0)
        even_QD = spread_QD / self.count_Q[..., None]
        even_Q1 = even_QD.sum(-1, keepdim=True)
        back_KQ, real_KQ = self.weights_QK.transpose(-1, -2), self.real_QK.transpose(-1, -2)
        value = self.value.clamp_min(0) * (back_KQ @ plus_QD) + self.value.clamp_max(0) * (back_KQ @ minus_QD)
        turn = self.turn_QDE.clamp_min(0) * plus_QD[..., None] + self.turn_QDE.clamp_max(0) * minus_QD[..., None]
        query = turn.sum(-2) + even_Q1
        return query, self._to_keys(plus_QD, minus_QD) + real_KQ @ even_Q1, value + real_KQ @ even_QD

    def _to_keys(self, plus_QD: Tensor, minus_QD: Tensor) -> Tensor:
        pull_QKD, match_QKE = self._pull()
        up, down = pull_QKD.clamp_min(0), pull_QKD.clamp_max(0)
        plus_QK1 = (up * plus_QD[..., None, :] + down * minus_QD[..., None, :]).sum(-1, keepdim=True)
        minus_QK1 = (down * plus_QD[..., None, :] + up * minus_QD[..., None, :]).sum(-1, keepdim=True)
        return (match_QKE.clamp_min(0) * plus_QK1 + match_QKE.clamp_max(0) * minus_QK1).sum(-3)


class _Norm:
    """Layer norm of rows at one input: terms x_i dy_o/dx_i of each output, and the remaining constant."""

    def __init__(self, x_NI: Tensor, norm: NormArguments) -> None:
        self.output_NO = layer_norm(x_NI, norm["shape"], norm["weight"], norm["bias"], norm["eps"])
        self._x_NI = x_NI
        inverse_N1 = (x_NI.var(-1, unbiased=False, keepdim=True) + norm["eps"]).rsqrt()
        self._normed_NI = (x_NI - x_NI.mean(-1, keepdim=True)) * inverse_N1
        self._gain_NO = inverse_N1 * (x_NI.new_ones(x_NI.shape[-1]) if norm["weight"] is None else norm["weight"])
        self._sums = [
            torch.cat(blocks) for blocks in zip(*map(self._settle, self._blocks(torch.arange(len(x_NI)))), strict=True)
        ]

    def share(self, relevance: Tensor) -> tuple[Tensor]:
        """Relevance of the input; rows that get nothing are not computed."""
        received_NO = relevance.reshape(self._x_NI.shape)
        found_NI = torch.zeros_like(received_NO)
        for rows in self._blocks(received_NO.any(-1).nonzero()[:, 0]):
            constant, above, below = (part[rows] for part in self._sums)
            plus_NO, minus_NO = received_NO[rows] * above, received_NO[rows] * below
            even_N = (plus_NO * constant.clamp_min(0) + minus_NO * constant.clamp_max(0)).mean(-1)
            up_NOI, down_NOI = self._terms(rows)
            found_NI[rows] = (plus_NO[:, None] @ up_NOI + minus_NO[:, None] @ down_NOI)[:, 0] + even_N[:, None]
        return (found_NI.view_as(relevance),)

    def _blocks(self, rows_N: Tensor) -> tuple[Tensor, ...]:
        """Ranges of rows whose Jacobians fit into a block."""
        return rows_N.split(max(1, BLOCK // self._x_NI.shape[-1] ** 2)) if len(rows_N) else ()

    def _terms(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """[N, O, I]: the positive and the negative ones."""
        x_NI, normed_NI = self._x_NI[rows], self._normed_NI[rows]
        slope_NOI = (1 + normed_NI[:, :, None] * normed_NI[:, None]).div_(-x_NI.shape[-1])
        slope_NOI.diagonal(dim1=-2, dim2=-1).add_(1)
        terms_NOI = slope_NOI.mul_(self._gain_NO[rows][:, :, None]).mul_(x_NI[:, None])
        return terms_NOI.clamp_min(0), terms_NOI.clamp_max(0)

    def _settle(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The constant of each output, and its contribution to terms of either sign."""
        up_NOI, down_NOI = self._terms(rows)
        plus_NO, minus_NO = up_NOI.sum(-1), down_NOI.sum(-1)
        constant_NO = self.output_NO[rows] - plus_NO - minus_NO
        return constant_NO, *_parts(plus_NO + constant_NO.clamp_min(0), minus_NO + constant_NO.clamp_max(0))


def _parts(plus: Tensor, minus: Tensor) -> tuple[Tensor, Tensor]:
    """Relevance per unit of a positive and of a negative term, from their sums."""
    edge = tiny(plus.dtype)
    alpha, beta = ALPHA * (plus > edge), BETA * (minus < -edge)
    total = (alpha + beta).clamp_min(edge)
    return alpha / total / plus.clamp_min(edge), beta / total / minus.clamp_max(-edge)


RULE = AlphaBeta2021
