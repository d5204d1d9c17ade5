"""Propagation: inside the block, operations on tensors with relevance are computed by a rule.

The model is not patched: a TorchFunctionMode intercepts torch functions in this thread, inside the block. A function
without a treatment runs unchanged and is recorded: the model is rejected if relevance would pass through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from headcount.errors import ModelError
from headcount.probes.relevance.functions import KINDS, plain_name
from headcount.probes.relevance.rules.rule import Rule, Untreated


class Propagation(TorchFunctionMode):
    """Computes operations on tensors with relevance by a rule."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self._rule = rule
        self._untreated: dict[Any, str] = {}  # nodes of the backward graph -> name of the function

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in _tensors([args, named])):
            return func(*args, **named)
        name = plain_name(func)
        if name not in KINDS:
            return self._leave(self._unknown(name, func, *args, **named), f"the function {name}")
        try:
            return getattr(self, f"_{KINDS[name]}")(func, *args, **named)
        except Untreated as reason:
            return self._leave(func(*args, **named), str(reason))

    def check(self, outputs: Tensor) -> None:
        """Raise if relevance of these outputs passes through a function without a treatment."""
        for node in _graph(outputs.grad_fn):
            foreign = isinstance(node, torch.autograd.function.BackwardCFunction) and not _ours(node)
            if node in self._untreated or foreign:
                passed = self._untreated.get(
                    node, f"{type(node).__name__}, a gradient that the model's code defines itself"
                )
                raise ModelError(
                    f"Rule {self._rule.name} cannot follow relevance through this model faithfully: it passes "
                    f"{passed}. Try another rule, or the gradient score, which works on every model."
                )

    def _unknown(self, name: str, func: Callable[..., object], *args: Any, **named: Any) -> Any:
        try:
            return func(*args, **named)
        except RuntimeError as error:
            if not name.endswith("_"):
                raise
            raise ModelError(
                f"Rule {self._rule.name} cannot follow relevance through this model faithfully: {name} modifies "
                "a tensor in place that the rule has already used."
            ) from error

    def _leave(self, result: object, what: str) -> Any:
        for tensor in _tensors([result]):
            if tensor.grad_fn is not None:
                self._untreated[tensor.grad_fn] = what
        return result

    # One method per kind of function: finds the arguments with relevance and calls the rule.

    def _rearranging(self, func: Callable[..., Tensor], *args: Any, **named: Any) -> Any:
        if (
            plain_name(func) == "dropout"
            and _option(args, named, 2, "training", True)
            and _option(args, named, 1, "p", 0.5)
        ):
            raise Untreated("dropout in training mode")
        return func(*args, **named)

    def _linear(self, _: object, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # noqa: A002
        if not _constant(weight, bias):
            raise Untreated("a linear layer whose weights depend on the input")
        return self._rule.affine(input, weight, bias)

    def _addmm(self, _: object, input: Tensor, mat1: Tensor, mat2: Tensor, **options: Any) -> Tensor:  # noqa: A002
        if options or not _constant(input, mat2):
            raise Untreated("addmm with weights that depend on the input")
        return self._rule.affine(mat1, mat2.t(), input)

    def _norm(
        self,
        _: object,
        input: Tensor,  # noqa: A002
        normalized_shape: list[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        if not _constant(weight, bias):
            raise Untreated("layer norm whose weights depend on the input")
        return self._rule.norm(input, {"shape": list(normalized_shape), "weight": weight, "bias": bias, "eps": eps})

    def _activation(self, func: Callable[..., Tensor], input: Tensor, *args: Any, **named: Any) -> Tensor:  # noqa: A002
        named.pop("inplace", None)
        return self._rule.activation(input, lambda x: func(x, *args, **named))

    def _factor(self, func: Callable[..., Tensor], *args: Any, **named: Any) -> Tensor:
        return self._rule.factor(func(*args, **named), plain_name(func))

    def _softmax(self, _: object, input: Tensor, dim: int | None = None, *rest: Any, **named: Any) -> Tensor:  # noqa: A002
        dtype = named.get("dtype") or next((value for value in rest if isinstance(value, torch.dtype)), None)
        return self._rule.softmax(input if dtype is None else input.to(dtype), -1 if dim is None else dim)

    def _sum(self, func: Callable[..., Tensor], a: Any, b: Any, **named: Any) -> Tensor:
        if named.get("alpha", 1) != 1:
            raise Untreated("a weighted sum")
        if _carries(a) and _carries(b):
            return self._rule.sum(a, b)
        x, constant = (a, b) if _carries(a) else (b, a)
        added = torch.as_tensor(constant, dtype=x.dtype, device=x.device)
        if not added.any() and torch.broadcast_shapes(added.shape, x.shape) == x.shape:
            return x  # Marian adds a bias of zeros to its logits
        return self._rule.shift(x, added)

    def _difference(self, func: Callable[..., Tensor], a: Any, b: Any, **named: Any) -> Tensor:
        minus = self._rule.scale(b, torch.neg) if _carries(b) else -b
        return self._sum(func, a, minus, **named)

    def _negation(self, func: Callable[..., Tensor], x: Tensor) -> Tensor:
        return self._rule.scale(x, func)

    def _product(self, func: Callable[..., Tensor], a: Any, b: Any) -> Tensor:
        if _carries(a) and _carries(b):
            return self._rule.product(a, b)
        x, constant = (a, b) if _carries(a) else (b, a)
        return self._rule.scale(x, lambda x: x * constant)

    def _quotient(self, func: Callable[..., Tensor], a: Any, b: Any, **named: Any) -> Tensor:
        if named:
            raise Untreated("division with rounding")
        divisor = self._rule.factor(b, "division") if _carries(b) else b
        return self._rule.scale(a, lambda x: x / divisor) if _carries(a) else a / divisor

    def _matrix_product(self, func: Callable[..., Tensor], a: Tensor, b: Tensor) -> Tensor:
        if _carries(a) and _carries(b):
            return self._rule.matrix_product(a, b)
        if _carries(b):
            return self._rule.mixture(a, b)
        return self._rule.affine(a, b.transpose(-1, -2), None) if b.dim() == 2 else self._batched(a, b)

    def _batched(self, a: Tensor, b: Tensor) -> Tensor:
        """a @ b, b constant: the mixture of a's columns."""
        return self._rule.mixture(b.transpose(-1, -2), a.transpose(-1, -2)).transpose(-1, -2)

    def _reduction(self, func: Callable[..., Tensor], x: Tensor, *args: Any, **named: Any) -> Tensor:
        return self._rule.reduction(x, lambda x: func(x, *args, **named))

    def _attention(
        self,
        _: object,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if dropout_p or not all(map(_carries, (query, key, value))):
            raise Untreated("attention with dropout, or with a constant side")
        groups = query.shape[-3] // key.shape[-3] if enable_gqa else 1
        key, value = (side.repeat_interleave(groups, -3) if groups > 1 else side for side in (key, value))
        return self._rule.attention(query, key, value, mask=attn_mask, scale=scale, causal=is_causal)


def _carries(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _constant(*values: object) -> bool:
    return not any(map(_carries, values))


def _option(args: tuple[Any, ...], named: dict[str, Any], index: int, name: str, default: Any) -> Any:
    return named.get(name, args[index] if len(args) > index else default)


def _tensors(values: object) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors(value)


def _graph(start: Any) -> Iterator[Any]:
    """Every node of a backward graph."""
    seen, waiting = set(), [start]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        waiting += [after for after, _ in node.next_functions]


def _ours(node: object) -> bool:
    return type(node).__module__.startswith("headcount.") or getattr(
        node, "_forward_cls", type(node)
    ).__module__.startswith("headcount.")
