"""ding-product: as `ding`, with Definition 3's second case where two activations are multiplied: u / (u + u').

This applies to gates, and in attention to each weight times value. The share of an attention weight stays with it.
"""

from __future__ import annotations

from torch import Tensor

from headcount.probes.relevance.carry import Proportion, WeightedSum
from headcount.probes.relevance.rules.ding import Ding


class DingProduct(Ding):
    name = "ding-product"

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        return Proportion.apply(a, b)

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        weights = x.detach().softmax(dim).requires_grad_()
        self.account.weights.append((self.account.part, weights))
        return weights

    def matrix_product(self, a: Tensor, b: Tensor) -> Tensor:
        return WeightedSum.apply(a, b)


RULE = DingProduct
