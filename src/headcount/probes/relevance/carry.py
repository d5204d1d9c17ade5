"""Carry: operations with the forward pass of the model and a backward pass that propagates slopes by a rule.

Relevance of an activation is then activation x slope. Only what the backward pass needs is saved, no inputs of linear
layers. Shapes: B batch, O outputs, I inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx


class Context(FunctionCtx):
    """torch's context of one call, with tensors saved for the backward pass."""

    for_backward: Any
    saved_tensors: tuple[Tensor, ...]


class NormArguments(TypedDict):
    """The arguments of `layer_norm` except its input."""

    shape: list[int]
    weight: Tensor | None
    bias: Tensor | None
    eps: float


def tiny(dtype: torch.dtype) -> float:
    """Smallest denominator: sums closer to zero are replaced by it. 1e-6 in float32, 2e-15 in float64."""
    return 8 * float(torch.finfo(dtype).eps)


def away_from_zero(numbers: Tensor) -> Tensor:
    """The same numbers with values near zero replaced by +-tiny; zero counts as positive."""
    edge = tiny(numbers.dtype)
    return torch.where(numbers < 0, numbers.clamp_max(-edge), numbers.clamp_min(edge))


def per_example(numbers: Tensor, rows: int) -> Tensor:
    """[B]: sums over everything that belongs to an example; rows of one example are consecutive."""
    return numbers.reshape(rows, -1).sum(1)


class Affine(Function):
    """y = x W' + b. The bias keeps its share, which goes to the scale [B]."""

    @staticmethod
    def forward(context: Context, x: Tensor, scale_B: Tensor, weight_OI: Tensor, bias_O: Tensor) -> Tensor:
        context.for_backward = weight_OI, bias_O, len(scale_B)
        return torch.nn.functional.linear(x, weight_OI, bias_O)

    @staticmethod
    def backward(context: Context, slope: Tensor) -> Any:
        weight_OI, bias_O, rows = context.for_backward
        return slope @ weight_OI, per_example(slope @ bias_O, rows), None, None


class Norm(Function):
    """Layer norm as a linear map: the mean is subtracted, 1/std is constant. The bias keeps its share."""

    @staticmethod
    def forward(context: Context, x: Tensor, scale_B: Tensor, norm: NormArguments) -> Tensor:
        y, _, inverse = torch.native_layer_norm(x, norm["shape"], norm["weight"], norm["bias"], norm["eps"])
        context.for_backward = inverse, norm, len(scale_B)
        return y

    @staticmethod
    def backward(context: Context, slope: Tensor) -> Any:
        inverse, norm, rows = context.for_backward
        bias = norm["bias"]
        constant = None if bias is None else per_example(slope * bias, rows)
        return centred(slope, norm["weight"], inverse), constant, None


class Shift(Function):
    """y = x + c, c a constant that keeps its share."""

    @staticmethod
    def forward(context: Context, x: Tensor, scale_B: Tensor, constant: Tensor) -> Tensor:
        context.for_backward = constant, len(scale_B), x.shape
        return x + constant

    @staticmethod
    def backward(context: Context, slope: Tensor) -> Any:
        constant, rows, shape = context.for_backward
        absorbed = torch.where(slope == 0, 0, slope * constant)  # masks are minus infinity where the slope is 0
        return slope.sum_to_size(shape), per_example(absorbed, rows), None


class Ratio(Function):
    """y = f(x) with f(x)/x held constant: relevance passes unchanged."""

    @staticmethod
    def forward(context: Context, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        y = function(x)
        context.save_for_backward(y / away_from_zero(x))
        return y

    @staticmethod
    def backward(context: Context, slope: Tensor) -> Any:
        (ratio,) = context.saved_tensors
        return slope * ratio, None


class Spread(Function):
    """y = x + c, where the share of the constant c goes to x. If x is zero, it stays with c."""

    @staticmethod
    def forward(context: Context, x: Tensor, scale_B: Tensor, constant: Tensor) -> Tensor:
        y = x + constant
        ratio = (y / away_from_zero(x)).nan_to_num(0, 0, 0)
        context.save_for_backward(ratio, y - ratio * x)
        context.for_backward = len(scale_B), x.shape
        return y

    @staticmethod
    def backward(context: Context, slope: Tensor) -> Any:
        ratio, rest = context.saved_tensors
        rows, shape = context.for_backward
        return (slope * ratio).sum_to_size(shape), per_example(slope * rest, rows), None


class Half(Function):
    """A product: each factor gets half of the relevance."""

    @staticmethod
    def forward(_: Context, product: Tensor) -> Tensor:
        return product.view_as(product)

    @staticmethod
    def backward(_: Context, slope: Tensor) -> Any:
        return slope / 2


class Proportion(Function):
    """y = a b, relevance in proportion a : b (Definition 3, second case)."""

    @staticmethod
    def forward(context: Context, a: Tensor, b: Tensor) -> Tensor:
        context.save_for_backward(a * b / away_from_zero(a + b))
        context.for_backward = a.shape, b.shape
        return a * b

    @staticmethod
    def backward(context: Context, slope: Tensor) -> Any:
        (ratio,) = context.saved_tensors
        left_shape, right_shape = context.for_backward
        return (slope * ratio).sum_to_size(left_shape), (slope * ratio).sum_to_size(right_shape)


class WeightedSum(Function):
    """context = weights @ values, where the relevance of each product is divided in proportion weight : value.

    Shapes: Q queries, K keys, D head size; a block of queries at a time, so that [.., block, K, D] stays small.
    """

    BLOCK = 1 << 24  # numbers of a block

    @staticmethod
    def forward(context: Context, weights_QK: Tensor, values_KD: Tensor) -> Tensor:
        context.save_for_backward(weights_QK, values_KD)
        return weights_QK @ values_KD

    @staticmethod
    def backward(context: Context, slope_QD: Tensor) -> Any:
        weights_QK, values_KD = context.saved_tensors
        to_weights, to_values = torch.zeros_like(weights_QK), torch.zeros_like(values_KD)
        each = max(1, WeightedSum.BLOCK // max(1, values_KD.numel()))
        for start in range(0, weights_QK.shape[-2], each):
            block = slice(start, start + each)
            weight, slope = weights_QK[..., block, :, None], slope_QD[..., block, None, :]
            value = values_KD[..., None, :, :]
            share = slope * weight * value / away_from_zero(weight + value)
            to_weights[..., block, :] = share.sum(-1)
            to_values += share.sum(-3)
        return to_weights, to_values


class Taylor(Function):
    """softmax as its first-order expansion at this input; the constant of the expansion keeps its share."""

    @staticmethod
    def forward(context: Context, x: Tensor, scale_B: Tensor, dim: int) -> Tensor:
        p = x.softmax(dim)
        context.save_for_backward(x, p)
        context.for_backward = len(scale_B), dim
        return p

    @staticmethod
    def backward(context: Context, slope: Tensor) -> Any:
        x, p = context.saved_tensors
        rows, dim = context.for_backward
        back = p * (slope - (slope * p).sum(dim, keepdim=True))
        absorbed = slope * p - torch.where(p == 0, 0, back * x)  # minus infinity where masked
        return back, per_example(absorbed, rows), None


def centred(slope: Tensor, weight: Tensor | None, inverse: Tensor) -> Tensor:
    """Back through (x - mean) / std * weight."""
    scaled = slope * inverse if weight is None else slope * weight * inverse
    return scaled - scaled.mean(-1, keepdim=True)
