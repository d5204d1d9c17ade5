"""Taps: read the values of each head while the model runs. Nothing is changed.

Shapes: B batch, Q queries, K keys, H heads of a site, D head size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UsageError, check_name, check_type
from headcount.hooks import Hooks, in_backward, original_module, uncompiled
from headcount.probes.values import is_recomputed
from headcount.sites.locate import locate
from headcount.sites.running import eager_attention
from headcount.sites.site import Site, Sites

Reduction = Callable[[Tensor], Tensor]  # attention [B, H, Q, K] -> anything smaller
What = str | Reduction
Sink = Callable[[Site, Any], None]


REDUCTIONS: dict[str, Reduction] = {
    "attention": lambda attention_BHQK: attention_BHQK,
    "max": lambda attention_BHQK: attention_BHQK.amax(-1),
    "argmax": lambda attention_BHQK: attention_BHQK.argmax(-1),
    "entropy": lambda attention_BHQK: torch.special.entr(attention_BHQK).sum(-1),  # in nats; 0 log 0 = 0
}
WHAT = ("outputs", *REDUCTIONS)


class Taps:
    """Values by site: `taps["encoder.0"]` if the model ran once, `taps.calls("encoder.0")` for all runs."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._calls: dict[tuple[str, int], list[Any]] = {site.key: [] for site in sites if site.num_heads}

    def __getitem__(self, site: str | tuple[str, int]) -> Any:
        calls = self.calls(site)
        if len(calls) != 1:
            raise UsageError(
                f"{self._sites[site].name} ran {len(calls)} times inside the block; taps[site] is for one run. "
                "Use taps.calls(site) for the list, or taps.clear() between runs."
            )
        return calls[0]

    def calls(self, site: str | tuple[str, int]) -> list[Any]:
        calls = self._sites[site]
        if calls.key not in self._calls:
            raise UsageError(f"{calls.name} has no heads left, so it has no values to read.")
        return self._calls[calls.key]

    def items(self) -> Iterator[tuple[Site, Any]]:
        return ((site, self[site.key]) for site in self._sites if site.num_heads)

    def clear(self) -> None:
        for calls in self._calls.values():
            calls.clear()

    def _add(self, site: Site, value: object) -> None:
        self._calls[site.key].append(value)


@contextmanager
def tapped(model: nn.Module, what: What | Sequence[What], *, sink: Sink | None = None) -> Iterator[Taps]:
    """Read values from every attention module while the model runs inside the block.

    Attention is computed eagerly inside the block, whatever backend the model has. In training mode it includes
    dropout, as the model uses it. With reentrant gradient checkpointing the values have no gradient.

    Args:
        model: The model.
        what: "outputs", the output of each head [B, Q, H, D] as it enters the output projection; "attention" [B, H, Q,
            K]; its "max", "argmax" or "entropy" per query [B, H, Q]; or a function of the attention. A list of these
            gives a dict per site. Reductions are computed layer by layer, so no attention map is stored.
        sink: Function called with (site, value) for each value, instead of storing it.

    Yields:
        The values by site.
    """
    check_type("what", what, str | Callable | Iterable, f"one or several of {', '.join(WHAT)}, or a function")
    single = isinstance(what, str) or callable(what)
    items: Sequence[Any] = (what,) if single else tuple(what)  # type: ignore[arg-type]
    reductions = {_name(item): _reduction(item) for item in items}
    if len(reductions) < len(items):
        raise UsageError(
            f"Two tapped items have the same name: {', '.join(map(_name, items))}. Give your functions different names."
        )
    sites = locate(model)
    taps = Taps(sites)
    deliver = uncompiled(sink) if sink is not None else taps._add
    with ExitStack() as stack:
        if any(reduction is not None for reduction in reductions.values()):
            if is_recomputed(model):
                warnings.warn(
                    "Inside hc.played, the attention of a replaced head is read as the model computes it, not as the "
                    "role uses it. Its outputs are those of the role.",
                    stacklevel=4,
                )
            stack.enter_context(eager_attention(original_module(model)))
        hooks = stack.enter_context(Hooks(model))
        for site in (site for site in sites if site.num_heads):
            _Reader(site, reductions, not single, deliver).attach(hooks)
        yield taps


class _Reader:
    """Reads from one site and delivers a value when all parts of one run are complete."""

    def __init__(self, site: Site, reductions: dict[str, Reduction | None], several: bool, deliver: Sink) -> None:
        self._site = site
        self._reductions = {name: reduction for name, reduction in reductions.items() if reduction is not None}
        self._outputs = next((name for name, reduction in reductions.items() if reduction is None), None)
        self._several = several
        self._deliver = deliver
        self._values: dict[str, Tensor] = {}

    def attach(self, hooks: Hooks) -> None:
        site, attention = self._site, self._site.attention
        if self._outputs is not None:
            hooks.see_input(site.entry, self._see_outputs)
        if self._reductions:
            if attention.ask_weights:
                hooks.set_argument(site.module, "output_attentions", True)
            hooks.change_output(site.module, self._see_attention)

    def _see_outputs(self, context: Tensor) -> Tensor:
        heads_BTHD = context.unflatten(-1, (self._site.num_heads, self._site.head_dim))
        self._take({str(self._outputs): heads_BTHD})
        return heads_BTHD.flatten(-2)

    def _see_attention(self, returned: tuple[Any, ...]) -> None:
        attention_BHQK = returned[self._site.attention.weights]
        self._take({name: reduction(attention_BHQK) for name, reduction in self._reductions.items()})

    def _take(self, values: dict[str, Tensor]) -> None:
        if in_backward():  # gradient checkpointing runs the layer a second time
            return
        self._values.update(values)
        if len(self._values) == len(self._reductions) + (self._outputs is not None):
            recorded, self._values = self._values, {}
            self._deliver(self._site, recorded if self._several else next(iter(recorded.values())))


def _name(what: What) -> str:
    return what if isinstance(what, str) else getattr(what, "__name__", "reduction")


def _reduction(what: What) -> Reduction | None:
    """The function of the attention, or None for the heads' outputs."""
    if callable(what):
        return what
    check_name("thing to tap", what, WHAT)
    return REDUCTIONS.get(what)
