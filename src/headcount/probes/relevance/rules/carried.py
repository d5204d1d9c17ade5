"""Carried: base class of rules whose backward pass propagates relevance itself, not slopes.

Relevance passes through element-wise functions unchanged; a product gives half to each side.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from headcount.probes.relevance.rules.rule import Rule
from headcount.probes.relevance.shares import halves, same


class Carried(Rule):
    slopes = False

    def activation(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return same(function, x)

    def shift(self, x: Tensor, constant: Tensor) -> Tensor:
        return same(lambda x: x + constant, x)

    def scale(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return same(function, x)

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        return halves(a, b)
