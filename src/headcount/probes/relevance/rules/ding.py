"""ding: the rule of Voita et al. 2019 (appendix A, after Ding et al. 2017), Definition 3's case of sums.

Every operation is a linear map at this input, so relevance = activation x slope of the network in which attention
weights, 1/std and the ratios of activations are constant. A gate act(g) u gives half to each side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import linear

from headcount.probes.relevance.carry import Affine, Half, Norm, NormArguments, Ratio, Shift, Spread
from headcount.probes.relevance.rules.rule import Bias, Rule


class Ding(Rule):
    """absorb: biases take their share; redistribute: sums are taken without biases, as the appendix writes them."""

    name = "ding"
    slopes = True
    biases: ClassVar[tuple[Bias, ...]] = ("absorb", "redistribute")

    def affine(self, x: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        if bias_O is None:
            return linear(x, weight_OI)
        if self.bias == "redistribute":
            return self.shift(linear(x, weight_OI), bias_O)
        return Affine.apply(x, self.account.scale(), weight_OI, bias_O)

    def norm(self, x: Tensor, norm: NormArguments) -> Tensor:
        if norm["bias"] is not None and self.bias == "redistribute":
            return self.shift(self.norm(x, {**norm, "bias": None}), norm["bias"])
        return Norm.apply(x, self.account.scale(), norm)

    def activation(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return Ratio.apply(x, function)

    def sum(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b

    def shift(self, x: Tensor, constant: Tensor) -> Tensor:
        kind = Spread if self.bias == "redistribute" else Shift
        return kind.apply(x, self.account.scale(), constant)

    def scale(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return function(x)

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        return Half.apply(a * b)

    def reduction(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return function(x)

    def mixture(self, weights_QK: Tensor, values_KD: Tensor) -> Tensor:
        return weights_QK @ values_KD


RULE = Ding
