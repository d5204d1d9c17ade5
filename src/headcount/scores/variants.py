"""Variants of a model, each with other heads off at one site, all measured on the same examples. Fast, and exact.

What a site's heads cannot reach is computed once (`probes.replay`), several variants run in one batch, and outputs are
checked against the unmasked model's instead of being written anew (`tasks.translation.drafts`).
Shapes: V variants, N examples, B rows of a batch, H heads of a site, C columns of statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.hooks import Hooks
from headcount.probes.masks import masked, multiply
from headcount.probes.replay import Memory, remembered, replayed
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import Site
from headcount.tasks.task import Batch, Task

Progress = Callable[[int, int], None]
_TOKENS = 4096  # of a batch of variants: more at once is no faster on a CPU


@dataclass(frozen=True)
class Variant:
    """A model with some heads of one site off."""

    site: tuple[str, int]
    off: tuple[Head, ...]


@dataclass(frozen=True)
class Measured:
    """What the unmasked model and each variant contribute, example by example, in the order of the task's batches."""

    base: np.ndarray  # [N, C]
    variants: np.ndarray  # [V, N, C]


def one_out(model: nn.Module) -> list[Variant]:
    """Every head off alone."""
    return [Variant(head.site, (head,)) for head in locate(model).heads]


def all_but_one(model: nn.Module) -> list[Variant]:
    """Every head left alone in its site, where there is more than one."""
    sites = [site for site in locate(model) if site.num_heads > 1]
    return [
        Variant(site.key, tuple(other for other in site.head_names() if other != head))
        for site in sites
        for head in site.head_names()
    ]


def measure(
    model: nn.Module,
    task: Task,
    variants: Sequence[Variant],
    *,
    fast: bool = True,
    progress: Progress = lambda *_: None,
) -> Measured:
    """Measure the model and its variants on a task.

    fast: leave out what need not be computed again. False is the obvious loop, one full run per variant and batch.
    """
    if not variants:
        raise UsageError("There are no variants to measure.")
    if hasattr(task, "drafts") and task.drafts(model):
        pieces = _written(model, task, variants, fast)
    elif getattr(task, "in_one_run", False):
        pieces = _batches(model, task, variants, fast)
    else:
        pieces = iter([_whole(model, task, variants)])
    total = sum(1 for _ in task.batches())
    bases, others = [], []
    with evaluating(model):
        for done, (base, rest) in enumerate(pieces, start=1):
            bases.append(base)
            others.append(rest)
            progress(done, total)
    if not bases:
        raise UsageError("The task has no batches: there is nothing to measure on.")
    return Measured(np.concatenate(bases), np.concatenate(others, axis=1))


Piece = tuple[np.ndarray, np.ndarray]  # [B, C], [V, B, C]


def _whole(model: nn.Module, task: Task, variants: Sequence[Variant]) -> Piece:
    """For tasks that can only measure all of their data at once."""
    sites = locate(model)
    found = []
    for variant in variants:
        with masked(model, sites.mask(off=variant.off)):
            found.append(task.quality(model).statistics)
    return task.quality(model).statistics, np.stack(found)


def _batches(model: nn.Module, task: Any, variants: Sequence[Variant], fast: bool) -> Iterator[Piece]:
    """For tasks that measure a batch in one run of the model."""
    for batch in task.batches():
        rows = _rows(batch)
        with remembered(model, rows) as memory:
            base = task.measure(model, batch)
        found = np.empty((len(variants), *base.shape))
        if not fast:
            for place, variant in enumerate(variants):
                with masked(model, locate(model).mask(off=variant.off)):
                    found[place] = task.measure(model, batch)
        else:
            for site, places in _groups(model, variants, _tokens(batch)):
                gate = _Gate(site, [variants[place] for place in places], rows)
                with _changed(model, memory, site, gate, len(places)):
                    statistics = task.measure(model, _repeated(batch, len(places)))
                found[places] = statistics.reshape(len(places), rows, -1)
        yield base, found


def _written(model: nn.Module, task: Any, variants: Sequence[Variant], fast: bool) -> Iterator[Piece]:
    """For tasks that measure what the model writes."""
    drafts = task.written(model)
    for rows in task.rows():
        own = [drafts[row] for row in rows]
        base = task.statistics(rows, own)
        found = np.empty((len(variants), *base.shape))
        if fast:
            tokens = len(rows) * int(task.lengths[rows].max())
            memory = _memory_of(model, task, rows, own)
            for site, places in _groups(model, variants, tokens):
                gate = _Gate(site, [variants[place] for place in places], len(rows))
                written = _rewritten(model, task, rows, own, memory, site, gate, len(places))
                for place, outputs in zip(places, written, strict=True):
                    found[place] = _statistics(task, rows, own, base, outputs)
        else:
            for place, variant in enumerate(variants):
                with masked(model, locate(model).mask(off=variant.off)):
                    found[place] = task.statistics(rows, task.written(model, rows))
        yield base, found


def _memory_of(model: nn.Module, task: Any, rows: np.ndarray, own: list[list[int]]) -> Memory:
    """What a run over the unmasked model's own outputs leaves behind."""
    kept: list[Memory] = []

    @contextmanager
    def first() -> Iterator[None]:
        with remembered(model, len(rows)) as memory:
            kept.append(memory)
            yield

    task.rewritten(model, rows, own, first=first())
    return kept[0]


def _rewritten(
    model: nn.Module,
    task: Any,
    rows: np.ndarray,
    own: list[list[int]],
    memory: Memory,
    site: Site,
    gate: _Gate,
    times: int,
) -> list[list[list[int]]]:
    """What each of several variants writes."""
    with Hooks() as hooks:
        hooks.change_input(site.entry, multiply(site, gate))
        first = replayed(model, memory, site, times)
        written = task.rewritten(model, np.tile(rows, times), own * times, first=first, only=gate.only)
    return [written[start : start + len(rows)] for start in range(0, len(written), len(rows))]


def _statistics(
    task: Any, rows: np.ndarray, own: list[list[int]], base: np.ndarray, written: list[list[int]]
) -> np.ndarray:
    """What outputs contribute; those that are the unmasked model's contribute what that does."""
    changed = [place for place, (one, other) in enumerate(zip(own, written, strict=True)) if one != other]
    found = base.copy()
    if changed:
        found[changed] = task.statistics(rows[changed], [written[place] for place in changed])
    return found


class _Gate:
    """Values [rows, H] of a site's heads, for the rows of a batch that a run is on: variant after variant."""

    def __init__(self, site: Site, variants: Sequence[Variant], rows: int) -> None:
        heads = site.head_names()
        values_VH = [[float(head not in variant.off) for head in heads] for variant in variants]
        self._all = torch.tensor(values_VH).repeat_interleave(rows, dim=0)
        self._now = self._all

    def only(self, rows: Tensor) -> None:
        self._now = self._all[rows]

    def __call__(self) -> Tensor:
        return self._now


@contextmanager
def _changed(model: nn.Module, memory: Memory, site: Site, gate: Callable[[], Tensor], times: int) -> Iterator[None]:
    """The site's heads scaled by `gate`, on a batch repeated for several variants; nothing below is run again."""
    with Hooks() as hooks, replayed(model, memory, site, times):
        hooks.change_input(site.entry, multiply(site, gate))
        yield


def _groups(model: nn.Module, variants: Sequence[Variant], tokens: int) -> Iterator[tuple[Site, list[int]]]:
    """Numbers of variants of the same site that run together; tokens: of the batch they all run on."""
    sites, together = locate(model), max(1, _TOKENS // max(1, tokens))
    for key in dict.fromkeys(variant.site for variant in variants):
        places = [place for place, variant in enumerate(variants) if variant.site == key]
        for start in range(0, len(places), together):
            yield sites[key], places[start : start + together]


def _rows(batch: Batch) -> int:
    return next(len(value) for value in batch.values() if isinstance(value, Tensor))


def _tokens(batch: Batch) -> int:
    """Of the longest input; a batch whose parts differ in rows is not run several times at once."""
    tensors = [value for value in batch.values() if isinstance(value, Tensor)]
    if len({len(value) for value in tensors}) > 1:
        return _TOKENS
    return max(value.numel() for value in tensors)


def _repeated(batch: Batch, times: int) -> Mapping[str, Any]:
    if times == 1:
        return batch
    return {
        name: value.repeat(times, *(1,) * (value.dim() - 1)) if isinstance(value, Tensor) else value
        for name, value in batch.items()
    }
