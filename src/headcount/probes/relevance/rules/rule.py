"""Rule: how relevance is propagated through each kind of operation. The interface of the files in this folder.

A method gets an operation whose inputs have relevance and returns the output that the model computes, with the backward
pass of the rule. Operations without a method raise an error if relevance would pass through them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from torch import Tensor

from headcount.errors import ModelError
from headcount.probes.relevance.account import Account
from headcount.probes.relevance.carry import NormArguments
from headcount.registry import Registry

Bias = Literal["absorb", "redistribute"]


class Untreated(ModelError):
    """An operation for which a rule has no treatment."""


class Rule(ABC):
    """One rule for one run."""

    name: ClassVar[str]
    slopes: ClassVar[bool]  # the backward pass propagates slopes: relevance = activation x slope; else relevance itself
    backend: ClassVar[str] = "eager"  # attention backend while relevance is traced
    biases: ClassVar[tuple[Bias, ...]] = ()  # allowed treatments of a bias; none: the rule has only one

    def __init__(self, account: Account, bias: Bias | None = None) -> None:
        self.account = account
        self.bias = bias

    @abstractmethod
    def affine(self, x: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        """x W' + b."""

    @abstractmethod
    def norm(self, x: Tensor, norm: NormArguments) -> Tensor:
        """Layer norm; norm: its shape, weight, bias and eps."""

    @abstractmethod
    def activation(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """An element-wise function."""

    @abstractmethod
    def sum(self, a: Tensor, b: Tensor) -> Tensor:
        """a + b, a residual connection for example."""

    @abstractmethod
    def shift(self, x: Tensor, constant: Tensor) -> Tensor:
        """x + constant."""

    @abstractmethod
    def scale(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """A constant multiple of x, neuron by neuron."""

    @abstractmethod
    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """a b, number by number: a gate."""

    def reduction(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Sums or means of x."""
        raise Untreated("a sum or mean")

    def factor(self, value: Tensor, name: str) -> Tensor:
        """Part of a norm's scale, computed by the function of this name."""
        return value.detach()

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        """Attention weights."""
        return x.softmax(dim).detach()

    def mixture(self, weights_QK: Tensor, values_KD: Tensor) -> Tensor:
        """weights @ values, the weights constant."""
        raise Untreated("a matrix product with constant weights")

    def matrix_product(self, a: Tensor, b: Tensor) -> Tensor:
        """a @ b, both with relevance."""
        raise Untreated("a matrix product of two activations")

    def attention(self, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        """Attention as one function."""
        raise Untreated("scaled_dot_product_attention")


members: Registry[type[Rule]] = Registry("rule", "headcount.probes.relevance.rules", "RULE")
