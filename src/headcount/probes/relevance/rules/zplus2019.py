"""zplus2019: alpha = 1, beta = 0, as in the first code of Voita et al. 2019.

A linear layer distributes relevance by |x| max(W, eps), without its bias; a sum by absolute values; layer norm and
activations pass it through; attention weights are the weights of a sum over values. All relevance has one sign and is
conserved.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear

from headcount.probes.relevance.carry import NormArguments, per_example, tiny
from headcount.probes.relevance.rules.carried import Carried
from headcount.probes.relevance.shares import same, shared

FLOOR = 1e-6  # eps: the smallest weight


class ZPlus2019(Carried):
    name = "zplus2019"

    def affine(self, x: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        strength = x.detach().abs()
        inverse = linear(strength, weight_OI.clamp_min(FLOOR)).clamp_min(tiny(x.dtype)).reciprocal()

        def sharing(relevance: Tensor) -> tuple[Tensor]:
            received = strength * ((relevance * inverse) @ weight_OI.clamp_min(FLOOR))
            return (self._rescaled(received, relevance),)

        return shared(lambda x: linear(x, weight_OI, bias_O), sharing, x)

    def _rescaled(self, received: Tensor, emitted: Tensor) -> Tensor:
        """Relevance rescaled to the total of each example: outputs that are zero cannot distribute theirs."""
        rows = self.account.rows
        size_B, wanted_B = per_example(received, rows), per_example(emitted, rows)
        factor_B = torch.where(size_B == 0, 1, wanted_B / torch.where(size_B == 0, 1, size_B))
        return (received.reshape(rows, -1) * factor_B[:, None]).view_as(received)

    def norm(self, x: Tensor, norm: NormArguments) -> Tensor:
        return same(lambda x: layer_norm(x, norm["shape"], norm["weight"], norm["bias"], norm["eps"]), x)

    def sum(self, a: Tensor, b: Tensor) -> Tensor:
        left, right = a.detach().abs(), b.detach().abs()
        inverse = (left + right).clamp_min(tiny(a.dtype)).reciprocal()

        def sharing(relevance: Tensor) -> tuple[Tensor, Tensor]:
            part = relevance * inverse
            return (part * left).sum_to_size(a.shape), (part * right).sum_to_size(b.shape)

        return shared(lambda a, b: a + b, sharing, a, b)

    def mixture(self, weights_QK: Tensor, values_KD: Tensor) -> Tensor:
        weight, strength = weights_QK.clamp_min(0), values_KD.detach().abs()
        inverse = (weight @ strength).clamp_min(tiny(weight.dtype)).reciprocal()

        def sharing(relevance: Tensor) -> tuple[Tensor]:
            return (strength * (weight.transpose(-1, -2) @ (relevance * inverse)),)

        return shared(lambda values_KD: weights_QK @ values_KD, sharing, values_KD)


RULE = ZPlus2019
