"""Traces: the outputs of a run at every attention site and at the end, and the differences of another run from them.

After each comparison the other run continues with the recorded output, so that each site is compared on the same input:
a difference belongs to that site and does not grow with depth.

Shapes: H remaining heads, D head size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from headcount.heads import Head
from headcount.hooks import Hooks
from headcount.sites.site import Site, SiteKey

_SKIPPED = ("past_key_values", "hidden_states", "attentions", "loss")


@dataclass
class Trace:
    """Outputs of one run, call by call."""

    heads: dict[SiteKey, list[Head]]  # heads that are compared: the remaining ones
    contexts_HD: dict[SiteKey, list[Tensor]] = field(default_factory=dict)  # outputs of these heads, [.., H, D]
    outputs: dict[SiteKey, list[Tensor]] = field(default_factory=dict)  # of the output projections
    results: list[dict[str, Tensor]] = field(default_factory=list)  # of the model


@contextmanager
def recorded(model: nn.Module, sites: Sequence[Site], heads: Mapping[SiteKey, list[Head]]) -> Iterator[Trace]:
    """Record runs inside the block in a trace."""
    trace = Trace(dict(heads))

    def context(site: Site) -> Callable[[Tensor], None]:
        calls = trace.contexts_HD.setdefault(site.key, [])
        return lambda seen: calls.append(_by_head(seen, site, trace.heads[site.key]).clone())

    def output(site: Site) -> Callable[[Tensor], None]:
        calls = trace.outputs.setdefault(site.key, [])
        return lambda seen: calls.append(seen.detach().clone())

    with Hooks() as hooks:
        for site in sites:
            hooks.see_input(site.entry, context(site))
            hooks.change_output(site.output, output(site))
        hooks.change_output(model, lambda seen: trace.results.append(_clones(tensors_of(seen))))
        yield trace


class Comparison:
    """Differences of a run from a trace, for each head, site output and model output."""

    def __init__(self, trace: Trace, hand_on: Callable[[Tensor, Site], Tensor] = lambda x, _: x.clone()) -> None:
        """hand_on: function of the recorded output whose result replaces the output of a site."""
        self._trace = trace
        self._hand_on = hand_on
        self.faults: dict[str, str] = {}  # name -> why it cannot be compared
        self._calls: dict[tuple[str, Any], int] = {}
        self._squares: dict[str, tuple[float, float]] = {}  # of the differences, of the expected values

    def differences(self) -> dict[str, float]:
        """Name -> norm of the difference relative to the norm of the expected values, over all calls."""
        return {
            point: math.sqrt(error / size) if size else (math.inf if error else 0.0)
            for point, (error, size) in self._squares.items()
        }

    @contextmanager
    def attached(self, model: nn.Module, sites: Sequence[Site]) -> Iterator[None]:
        """Compare the run inside the block with the recorded one."""
        with Hooks() as hooks:
            for site in sites:
                hooks.see_input(site.entry, self._context(site))
                hooks.change_output(site.output, self._output(site))
            hooks.change_output(model, self._result)
            yield
        self._check_calls([site for site in sites if site.num_heads])

    def _context(self, site: Site) -> Callable[[Tensor], None]:
        heads = self._trace.heads[site.key]

        def compare(context: Tensor) -> None:
            expected = self._next("context", site.key, self._trace.contexts_HD[site.key], site.name)
            if heads and expected is not None:
                seen = _by_head(context, site, heads)
                self._add([f"head {head}" for head in heads], expected.movedim(-2, 0), seen.movedim(-2, 0))

        return compare

    def _output(self, site: Site) -> Callable[[Tensor], Tensor | None]:
        def compare(output: Tensor) -> Tensor | None:
            expected = self._next("output", site.key, self._trace.outputs[site.key], site.name)
            if expected is None:
                return None
            self._add([f"output of {site.name}"], expected[None], output[None])
            return self._hand_on(expected, site)

        return compare

    def _result(self, result: object) -> Any:
        expected = self._next("result", None, self._trace.results, "the model")
        if expected is None:
            return None
        seen = tensors_of(result)
        for name, tensor in expected.items():
            if name in seen:
                self._add([name], tensor[None], seen[name][None])
            else:
                self.faults[name] = f"{name}: the masked model returns it, the pruned model does not."
        return _with_tensors(result, _clones(expected))

    def _next(self, what: str, key: Any, calls: list[Any], name: str) -> Any:
        number = self._calls.get((what, key), 0)
        if number == len(calls):
            self.faults[name] = f"{name} runs more often in the pruned model than in the masked one."
            return None
        self._calls[what, key] = number + 1
        return calls[number]

    def _check_calls(self, sites: Sequence[Site]) -> None:
        for site in sites:
            if self._calls.get(("output", site.key), 0) < len(self._trace.outputs[site.key]):
                self.faults[site.name] = f"{site.name} runs less often in the pruned model than in the masked one."

    def _add(self, places: list[str], expected: Tensor, seen: Tensor) -> None:
        """Add a call; the first dimension is that of the names."""
        if expected.shape != seen.shape:
            shapes = f"{list(seen.shape[1:])}, the masked {list(expected.shape[1:])}"
            self.faults[places[0]] = f"{places[0]}: the pruned model gives shape {shapes}."
            return
        finite = expected.isfinite()  # a query without keys can give NaN, even times 0; without its head it does not
        if (finite & ~seen.isfinite()).any():
            self.faults[places[0]] = (
                f"{places[0]}: the pruned model gives infinite values where the masked one does not."
            )
            return
        wide = torch.promote_types(expected.dtype, torch.float32)
        difference = torch.where(finite, seen.to(wide) - expected.to(wide), 0)
        errors = difference.flatten(1).norm(dim=1).tolist()
        sizes = torch.where(finite, expected.to(wide), 0).flatten(1).norm(dim=1).tolist()
        for point, error, size in zip(places, errors, sizes, strict=True):
            total = self._squares.get(point, (0.0, 0.0))
            self._squares[point] = total[0] + error**2, total[1] + size**2


def tensors_of(outputs: object) -> dict[str, Tensor]:
    """The tensors that a model returns, by name."""
    items = (
        outputs.items()
        if isinstance(outputs, Mapping)
        else enumerate(outputs if isinstance(outputs, tuple) else (outputs,))
    )
    return {
        str(name): value
        for name, value in items
        if isinstance(value, Tensor) and value.is_floating_point() and not any(part in str(name) for part in _SKIPPED)
    }


def _with_tensors(outputs: object, tensors: Mapping[str, Tensor]) -> Any:
    """The same outputs with other tensors."""
    if isinstance(outputs, Mapping):
        for name, tensor in tensors.items():
            outputs[name] = tensor  # type: ignore[index]
        return outputs
    if isinstance(outputs, tuple):
        return tuple(tensors.get(str(index), value) for index, value in enumerate(outputs))
    return tensors.get("0", outputs)


def _clones(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def _by_head(context: Tensor, site: Site, heads: Sequence[Head]) -> Tensor:
    """[.., heads of the site * D] -> [.., H, D]"""
    places = [site.heads.index(head.index) for head in heads]
    return context.detach().unflatten(-1, (site.num_heads, site.head_dim))[..., places, :]
