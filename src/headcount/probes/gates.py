"""Gates: trainable factors of heads' outputs. The base class of all gates, and how they are attached.

Shapes: G gated heads, H heads of one site, D head size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.heads import Head, HeadGrid
from headcount.hooks import Hooks, in_backward, uncompiled
from headcount.probes.masks import multiply
from headcount.sites.locate import locate
from headcount.sites.site import HeadNames, Site

SETTLED = 0.05  # a gate this close to 0 or 1 counts as settled


class Gates(nn.Module, ABC):
    """One trainable number per gated head, with the value of the gate during training and at test time."""

    logits_G: nn.Parameter

    def __init__(
        self,
        model: nn.Module,
        *,
        kinds: Sequence[str] | None = None,
        heads: HeadNames | None = None,
        seed: int = 0,
    ) -> None:
        """seed: of the random numbers that `draw` samples by default."""
        super().__init__()
        self._random = torch.Generator().manual_seed(seed)
        self.all_heads = locate(model).heads
        self.heads = gated_heads(model, kinds, heads)
        self._noise_G: Tensor | None = None
        self._values_G: Tensor | None = None

    def draw(self, generator: torch.Generator | None = None) -> None:
        """Sample random numbers, which are used until the next call. By default from a generator of the gates."""
        uniform_G = torch.rand(len(self.heads), generator=generator or self._random, dtype=torch.float64)
        self._noise_G = uniform_G.clamp(1e-6, 1 - 1e-6).to(self.logits_G)

    def refresh(self) -> None:
        """Compute the gates of the next run once for all sites; each run needs its own autograd graph."""
        if self._noise_G is None:
            self.draw()
        self._values_G = self.relaxed(cast(Tensor, self._noise_G))

    def current(self) -> Tensor:
        """[G]: the gates of the current run."""
        if self._values_G is None:
            self.refresh()
        return cast(Tensor, self._values_G)

    @abstractmethod
    def relaxed(self, uniform_G: Tensor) -> Tensor:
        """[G]: the gates during training, from uniform random numbers."""

    @abstractmethod
    def chosen(self) -> Tensor:
        """[G]: the gates at test time."""

    @abstractmethod
    def mean(self) -> Tensor:
        """[G]: the means of the gates over the random numbers."""

    def penalty(self) -> Tensor:
        """The penalty, to be added to the loss with a factor."""
        return self.logits_G.new_zeros(())

    def mask(self) -> HeadGrid:
        """A mask of all heads of the model, with 0 for heads whose gate is closed at test time."""
        closed = {head for head, value in zip(self.heads, self.chosen().tolist(), strict=True) if value == 0}
        return HeadGrid([(head, int(head not in closed)) for head in self.all_heads])

    def ranks(self) -> HeadGrid:
        """The trained values by head; higher is more open."""
        return HeadGrid(list(zip(self.heads, self.logits_G.detach().double().tolist(), strict=True)))

    @property
    def soft(self) -> bool:
        """Whether gates may be neither 0 nor 1 at test time."""
        return False

    def means(self) -> HeadGrid:
        return HeadGrid(list(zip(self.heads, self.mean().detach().double().tolist(), strict=True)))

    def settled(self, within: float = SETTLED) -> float:
        """Share of the gates whose mean is at most `within` from 0 or 1."""
        mean_G = self.mean().detach()
        return float(((mean_G < within) | (mean_G > 1 - within)).double().mean())


@contextmanager
def attached(model: nn.Module, gates: Gates, *, redraw: bool = True) -> Iterator[None]:
    """Multiply heads by their gates inside the block: sampled in training mode, test-time values in eval mode.

    redraw: sample new random numbers for every run; otherwise the training loop calls `draw`.
    """

    def begin(called: nn.Module) -> None:
        if called.training:
            if redraw:
                torch.rand(1)  # another random state for every run, see `_Runs`
                gates.draw()
            gates.refresh()

    runs = _Runs(model, gates)
    places = {head: index for index, head in enumerate(gates.heads)}
    gates.to(next(model.parameters()).device)
    with Hooks(model) as hooks:
        hooks.see_module(model, uncompiled(begin))
        for site in locate(model):
            mine = [places.get(head) for head in site.head_names()]
            if any(index is not None for index in mine):
                hooks.change_input_of(site.entry, _gate(runs, site, mine))
        yield


def gated_heads(model: nn.Module, kinds: Sequence[str] | None, heads: HeadNames | None) -> tuple[Head, ...]:
    """The heads of these kinds or with these names, in the order of the model. Raises if there are none."""
    sites = locate(model)
    candidates = set(sites.find(heads)) if heads is not None else set(sites.heads)
    gated = tuple(head for head in sites.of_kinds(kinds) if head in candidates)
    if not gated:
        raise UsageError("No head is left to put a gate on: give other kinds or heads.")
    return gated


@dataclass(frozen=True)
class Group:
    """Gated heads that share a budget."""

    name: str
    places: list[int]  # indices among the gated heads
    keep: int


def groups(heads: Sequence[Head], keep: int | Mapping[str, int]) -> tuple[Group, ...]:
    """One group of all gated heads, or one for each kind. Raises if a budget is impossible."""
    if isinstance(keep, int):
        gate_groups = [Group("heads", list(range(len(heads))), keep)]
    else:
        at = {kind: [index for index, head in enumerate(heads) if head.kind == kind] for kind in keep}
        gate_groups = [Group(f"{kind} heads", at[kind], number) for kind, number in keep.items()]
        without = sorted({head.kind for head in heads} - set(keep))
        if without:
            raise UsageError(f"{', '.join(without)} heads have gates, but keep= has no number for them.")
    for group in gate_groups:
        if not 0 <= group.keep <= len(group.places):
            raise UsageError(f"Cannot keep {group.keep} {group.name}: only {len(group.places)} have gates.")
    return tuple(gate_groups)


def exact_mask(gates: Gates, groups: Sequence[Group]) -> tuple[HeadGrid, int]:
    """The mask that meets the budget exactly, and the number of heads that were decided by rank, not by their gates."""
    mask, ranks = gates.mask(), gates.ranks()
    changed: dict[Head | str, int] = {}
    for group in groups:
        heads = sorted((gates.heads[index] for index in group.places), key=lambda head: -ranks[head])
        values = {head: int(index < group.keep) for index, head in enumerate(heads)}
        if sum(mask[head] for head in values) != group.keep:
            changed |= {head: value for head, value in values.items() if value != mask[head]}
    return mask.replace(changed), len(changed)


class _Runs:
    """The gates of the last runs. Gradient checkpointing runs a layer again, which needs those of its first run.

    Several runs may wait for their backward pass. They are told apart by the state of torch's random generator, which
    gradient checkpointing restores: every run takes a number from it.
    """

    _KEPT = 32  # runs that may wait for their backward pass

    def __init__(self, model: nn.Module, gates: Gates) -> None:
        self._model, self._gates = model, gates
        self._entries = {id(site.entry) for site in locate(model)}
        self._known: OrderedDict[int, _Run] = OrderedDict()

    def values(self, entry: nn.Module) -> Tensor:
        """[G]: the gates for this module, now. A module of a copy of the model is in a mode of its own."""
        original = self._model if id(entry) in self._entries else entry
        if not original.training:
            return self._gates.chosen()
        if torch.compiler.is_compiling():
            return self._gates.current()
        state = hash(torch.get_rng_state().numpy().tobytes())
        if in_backward():
            return self._again(state)
        values_G = self._gates.current()
        self._known[state] = _Run(cast(Tensor, self._gates._noise_G), values_G, torch.is_grad_enabled())
        self._known.move_to_end(state)
        if len(self._known) > self._KEPT * len(self._entries):
            self._known.popitem(last=False)
        return values_G

    def _again(self, state: int) -> Tensor:
        if state not in self._known:
            raise UsageError(
                "Gradient checkpointing runs a layer again, but its gates are not known any more: more than "
                f"{self._KEPT} runs wait for their backward pass, or the random state was not kept. Call backward "
                "after every run, and leave preserve_rng_state at True."
            )
        run = self._known[state]
        return run.values_G if run.recorded else self._gates.relaxed(run.noise_G)


@dataclass(frozen=True)
class _Run:
    """The gates of one run."""

    noise_G: Tensor
    values_G: Tensor
    recorded: bool  # whether autograd recorded the run; reentrant checkpointing records the second one instead


def _gate(runs: _Runs, site: Site, places: list[int | None]) -> Callable[[nn.Module, Tensor], Tensor]:
    """The gates of one site; heads without a gate are not changed."""
    gated_indices = [index for index in places if index is not None]
    contiguous = len(gated_indices) == len(places) and gated_indices == list(
        range(gated_indices[0], gated_indices[0] + len(gated_indices))
    )
    at = torch.tensor([number for number, index in enumerate(places) if index is not None])
    values = uncompiled(runs.values)

    def function(entry: nn.Module, context: Tensor) -> Tensor:
        values_G = values(entry)
        if contiguous:
            value = values_G[gated_indices[0] : gated_indices[0] + len(gated_indices)]
        else:
            value = values_G.new_ones(len(places)).index_put((at.to(values_G.device),), values_G[gated_indices])
        return multiply(site, lambda: value)(context)

    return function
