"""Replay: run a model again and skip the layers that a change at one site cannot affect.

During one run every layer's output is stored (`watched`). In a later run on the same batch, layers that had
finished before the site's layer began return their stored output (`skipped`), and the site's attention starts at
its heads' outputs (`replayed`). Nothing is assumed about the architecture: the order of layers is observed, and a
shortcut is taken only if it gives the same numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headcount.hooks import Hooks
from headcount.sites.locate import locate
from headcount.sites.site import Site, SiteKey


@dataclass
class Memory:
    """Stored outputs of one run of a model, for a batch of `rows`."""

    rows: int = 0
    began: dict[str, int] = field(default_factory=dict)  # layer -> index of the event
    ended: dict[str, int] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)  # of layers and attention modules, by path
    contexts: dict[SiteKey, Tensor] = field(default_factory=dict)  # inputs of the output projections
    runs: Counter[SiteKey] = field(default_factory=Counter)  # of each site
    heights: set[int] = field(default_factory=set)  # numbers of rows of these inputs, over all runs
    starts: dict[SiteKey, str] = field(default_factory=dict)  # sites whose attention can start at their heads' outputs
    events: int = 0

    def below(self, layer: str) -> list[str]:
        """Layers that had ended when this one began, so that it cannot affect them."""
        return [other for other, end in self.ended.items() if end < self.began[layer] and self.calls[other] == 1]

    def once(self, site: Site) -> bool:
        """Whether a site and its layer ran once: layers may share an attention module, which then runs in each."""
        return self.calls.get(layer_of(site)) == 1 and self.runs[site.key] == 1


def layer_of(site: Site) -> str:
    """Path of the layer of a site: up to the first number."""
    match = re.match(r"(?:.*?\.)?\d+(?=\.|$)", site.path)
    return match[0] if match else ""


def layers_of(sites: Iterable[Site]) -> list[str]:
    """Paths of the layers of these sites, without repetition."""
    return [layer for layer in dict.fromkeys(map(layer_of, sites)) if layer]


@contextmanager
def watched(model: nn.Module, layers: Iterable[str], memory: Memory, key: Callable[[str], str] = str) -> Iterator[None]:
    """Store the order and outputs of layers in the memory, for runs inside the block.

    key: function from a layer to the name of its stored output; the last output of a name is kept.
    """
    with Hooks() as hooks:
        for layer in layers:
            module = model.get_submodule(layer)
            hooks.see_call(module, partial(_begin, memory, layer))
            hooks.change_output(module, partial(_end, memory, layer, key(layer)))
        yield


@contextmanager
def skipped(model: nn.Module, outputs: Mapping[str, Any]) -> Iterator[None]:
    """Inside the block, these layers are not computed and return the given outputs."""
    with Hooks() as hooks:
        for layer, output in outputs.items():
            hooks.replace(model.get_submodule(layer), _returning(output))
            hooks.change_output(model.get_submodule(layer), _returning(output))  # which the user's hooks have changed
        yield


@contextmanager
def remembered(model: nn.Module, rows: int) -> Iterator[Memory]:
    """A memory for one run of the model on `rows` examples inside the block."""
    memory, sites = Memory(rows), [site for site in locate(model) if site.num_heads]
    with watched(model, layers_of(sites), memory), Hooks() as hooks:
        for site in sites:
            hooks.see_input(site.entry, partial(_see, memory, site.key))
            hooks.change_output(site.module, partial(memory.outputs.__setitem__, f"attention {site.name}"))
        yield memory
    for site in sites:
        if site.key in memory.contexts:
            memory.starts[site.key] = _start(memory, site)


@contextmanager
def replayed(model: nn.Module, memory: Memory, site: Site, times: int = 1) -> Iterator[None]:
    """Inside the block, runs on the same batch repeated `times` times compute only what the site's heads affect."""
    layer = layer_of(site)
    if not layer or not memory.once(site):
        yield
        return
    below = {other: _repeat(memory.outputs[other], memory.rows, times) for other in memory.below(layer)}
    with skipped(model, below), Hooks() as hooks:
        shortcut = _shortcut(memory, site, times)
        if shortcut is not None:
            hooks.replace(site.module, shortcut)
        yield


@contextmanager
def replayed_most(model: nn.Module, memory: Memory) -> Iterator[None]:
    """Inside the block, runs on the same batch skip every layer that some site's replay skips."""
    once = [site for site in locate(model) if memory.once(site)]
    last = max((memory.began[layer_of(site)] for site in once), default=0)
    with ExitStack() as replays:
        for site in once:
            if memory.began[layer_of(site)] == last:
                replays.enter_context(replayed(model, memory, site))
        yield


def _start(memory: Memory, site: Site) -> str:
    """Whether the attention module returns its heads' outputs ("before"), or their projection ("after")."""
    output, context = memory.outputs[f"attention {site.name}"], memory.contexts[site.key]
    states = output[0] if isinstance(output, tuple | list) else output
    if not isinstance(states, Tensor):
        return ""
    if states.shape == context.shape and torch.equal(states, context):
        return "before"
    with torch.no_grad():
        projected = site.output(context) if site.entry is site.output else None
    same = projected is not None and projected.shape == states.shape and torch.equal(projected, states)
    return "after" if same else ""


def _shortcut(memory: Memory, site: Site, times: int) -> Callable[..., Any] | None:
    """A shortcut for the site's attention that starts at its heads' outputs; None if it would give other numbers."""
    start = memory.starts.get(site.key)
    if not start:
        return None
    output, context = memory.outputs[f"attention {site.name}"], memory.contexts[site.key]
    if start == "before":
        return _returning(_repeat(output, memory.rows, times))
    many = _repeat(context, memory.rows, times)
    rest = _repeat(output[1:], memory.rows, times) if isinstance(output, tuple | list) else None

    def attention(*_: Any, **__: Any) -> Any:
        projected = site.output(many)  # with its hooks: a mask acts here
        return projected if rest is None else type(output)((projected, *rest))

    return attention


def _returning(value: object) -> Callable[..., Any]:
    return lambda *_, **__: value


def _repeat(value: object, rows: int, times: int) -> Any:
    """Every tensor with a row per example, repeated as a whole: rows of the first copy, of the second, ..."""
    if times == 1:
        return value
    if isinstance(value, Tensor):
        return value.repeat(times, *(1,) * (value.dim() - 1)) if value.dim() and value.shape[0] == rows else value
    if isinstance(value, tuple | list):
        return type(value)(_repeat(item, rows, times) for item in value)
    return value


def _see(memory: Memory, key: SiteKey, context: Tensor) -> None:
    memory.contexts[key] = context
    memory.runs[key] += 1
    memory.heights.add(len(context))


def _begin(memory: Memory, layer: str) -> None:
    memory.events += 1
    memory.began.setdefault(layer, memory.events)
    memory.calls[layer] = memory.calls.get(layer, 0) + 1


def _end(memory: Memory, layer: str, key: str, output: object) -> None:
    memory.events += 1
    memory.ended[layer] = memory.events
    memory.outputs[key] = output
