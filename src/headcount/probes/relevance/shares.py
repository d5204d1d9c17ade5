"""Shares: operations whose backward pass propagates relevance itself, distributed by a function of the rule.

The forward pass is that of the model. Relevance from several paths is summed, like gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.autograd import Function

from headcount.probes.relevance.carry import Context

# relevance of the output -> relevance of each input, in their shapes
Sharing = Callable[[Tensor], Sequence[Tensor]]


class _Shared(Function):
    @staticmethod
    def forward(context: Context, compute: Callable[..., Tensor], sharing: Sharing, *inputs: Tensor) -> Tensor:
        context.for_backward = sharing
        return compute(*inputs)

    @staticmethod
    def backward(context: Context, relevance: Tensor) -> Any:
        return None, None, *context.for_backward(relevance)


def shared(compute: Callable[..., Tensor], sharing: Sharing, *inputs: Tensor) -> Tensor:
    """The output of `compute`; `sharing` distributes its relevance to the inputs."""
    return _Shared.apply(compute, sharing, *inputs)


def same(compute: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A function of x only: all relevance is passed to x, neuron by neuron."""
    return shared(compute, lambda relevance: (relevance.sum_to_size(x.shape),), x)


def halves(a: Tensor, b: Tensor) -> Tensor:
    """The product of a and b: half of its relevance to each."""

    def sharing(relevance: Tensor) -> tuple[Tensor, Tensor]:
        return (relevance / 2).sum_to_size(a.shape), (relevance / 2).sum_to_size(b.shape)

    return shared(lambda a, b: a * b, sharing, a, b)
