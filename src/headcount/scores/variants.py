"""Variants of a model with different heads of one site masked, all measured on the same examples. Fast and exact.

Layers below a site are computed once (`probes.replay`), several variants run in one batch, and translations are checked
against those of the unmasked model instead of being decoded again (`tasks.translation.drafts`).
Shapes: V variants, N examples, B rows of a batch, H heads of a site, C columns of statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.hooks import Hooks
from headcount.journal import Shelf
from headcount.probes.masks import masked, multiply
from headcount.probes.replay import Memory, remembered, replayed, replayed_most
from headcount.probes.runs import warn_of_idle
from headcount.progress import Finer, Progress, silent
from headcount.scores.one_pass import by_site, with_runs
from headcount.scores.pieces import collected
from headcount.sites.locate import locate
from headcount.sites.running import Draws, evaluating
from headcount.sites.site import Site, SiteKey
from headcount.tasks.batch import Batch, by_example, named_tensors, repeated, rows_of
from headcount.tasks.task import Task

if TYPE_CHECKING:
    from headcount.tasks.translation.pairs import Translation

Piece = Mapping[str, np.ndarray]
Report = Callable[[int], None]  # called with the number of finished variants of a batch

_TOKENS = 4096  # in a batch of variants; more is no faster on a CPU
_ROWS = 256  # outputs of different variants that are completed together
_RUNS = 2  # revisions of a draft before the rest is decoded step by step


@dataclass(frozen=True)
class Variant:
    """Some masked heads of one site."""

    site: tuple[str, int]
    off: tuple[Head, ...]


@dataclass(frozen=True)
class Outcome:
    """Statistics of each example for the unmasked model and each variant, in the order of the task's batches."""

    base: np.ndarray  # [N, C]
    variants: np.ndarray  # [V, N, C]; NaN if the site of the variant did not run


def one_out(model: nn.Module) -> list[Variant]:
    """One variant per head, with that head masked."""
    return [Variant(head.site, (head,)) for head in locate(model).heads]


def all_but_one(model: nn.Module) -> list[Variant]:
    """One variant per head, with all other heads of its site masked."""
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
    finished: Shelf | None = None,
    progress: Progress = silent,
) -> Outcome:
    """Measure the model and its variants on a task.

    fast: skip computations that variants share. False runs the full model for each variant and batch.
    finished: shelf for finished batches, from which an interrupted measurement resumes.
    """
    if not variants:
        raise UsageError("There are no variants to measure.")
    finer = Finer(progress, len(variants))
    items, measure_piece = pieces_of(model, task, variants, fast=fast, report=finer.part)
    with evaluating(model):
        pieces = collected(items, measure_piece, finished=finished, progress=finer.step)
    variants_VNC = np.concatenate([piece["variants"] for piece in pieces], axis=1)
    runs_H = np.sum([piece["runs"] for piece in pieces], axis=0)
    idle_V = idle(model, variants, by_site(model, runs_H))
    base_NC = np.concatenate([piece["base"] for piece in pieces])
    return Outcome(base_NC, np.where(idle_V[:, None, None], np.nan, variants_VNC))


def idle(model: nn.Module, variants: Sequence[Variant], runs: Mapping[SiteKey, float]) -> np.ndarray:
    """[V]: whether the site of a variant did not run on the data. Warns of such sites. runs: of each site."""
    warn_of_idle(model, runs)
    return np.array([not runs.get(variant.site) for variant in variants])


def pieces_of(
    model: nn.Module, task: Any, variants: Sequence[Variant], *, fast: bool = True, report: Report = lambda _: None
) -> tuple[list[Any], Callable[[Any], Piece]]:
    """The batches of a task, and a function from a batch to the statistics of base [B, C] and variants [V, B, C].

    It also gives "runs" [H]: how often the site of each head of the model ran.
    """
    items, piece = _items(model, task, variants, fast, report)
    return items, with_runs(model, piece)


def _items(
    model: nn.Module, task: Any, variants: Sequence[Variant], fast: bool, report: Report
) -> tuple[list[Any], Callable[[Any], Piece]]:
    if task.drafts(model):
        return list(task.rows()), lambda rows: _written(model, task, rows, variants, fast, report)
    if task.in_one_run:
        return list(task.batches()), lambda batch: _batch(model, task, batch, variants, fast, report)
    return [None], lambda _: _whole(model, task, variants, report)


def _whole(model: nn.Module, task: Task, variants: Sequence[Variant], report: Report) -> Piece:
    """For tasks that can only measure all of their data at once."""
    sites = locate(model)
    outcomes = []
    for variant in variants:
        with masked(model, sites.mask(off=variant.off)):
            outcomes.append(task.quality(model).statistics)
        report(len(outcomes))
    return {"base": task.quality(model).statistics, "variants": np.stack(outcomes)}


def _batch(
    model: nn.Module, task: Task, batch: Batch, variants: Sequence[Variant], fast: bool, report: Report
) -> Piece:
    """For tasks that measure a batch in one run of the model."""
    draws = Draws(model)
    with remembered(model, rows_of(batch)) as memory:
        base = task.measure(model, batch)
    rows = memory.rows
    # not for multiple choice, a loss that runs other rows too, or a model that samples, by the rows of its batch
    fast = fast and memory.heights <= {rows} and not draws.taken
    tokens = _tokens(batch) if fast and task.separate(model) else _TOKENS  # else one variant at a time
    if fast and not task.predicts:  # a loss that may read more than the logits
        fast = _can_skip(model, task, batch, memory, base, min(2, _together(tokens)))
    measured = np.empty((len(variants), *base.shape))
    if not fast:
        for index, variant in enumerate(variants):
            draws.again()
            with masked(model, locate(model).mask(off=variant.off)):
                measured[index] = task.measure(model, batch)
            report(index + 1)
    else:
        finished = 0
        for site, places in _groups(model, variants, tokens):
            gate = _gate(site, [variants[index] for index in places], rows)
            with _changed(model, memory, site, gate, len(places)):
                statistics = task.measure(model, repeated(batch, len(places)))
            measured[places] = statistics.reshape(len(places), *base.shape)
            finished += len(places)
            report(finished)
    return {"base": base, "variants": measured}


def _can_skip(model: nn.Module, task: Task, batch: Batch, memory: Memory, base: np.ndarray, times: int) -> bool:
    """Whether the task measures the same if layers do not run. A loss may read attention weights, or what hooks keep.

    times: of the batch in the run before, which leaves other values in such hooks.
    """
    try:
        with masked(model, locate(model).grid(0)):
            task.measure(model, repeated(batch, times))
        with replayed_most(model, memory):
            return np.array_equal(task.measure(model, batch), base, equal_nan=True)
    except Exception:  # noqa: BLE001  (a loss that misses what is inside a layer may fail in any way)
        return False


def _written(
    model: nn.Module, task: Translation, rows: np.ndarray, variants: Sequence[Variant], fast: bool, report: Report
) -> Piece:
    """For tasks that measure what the model writes."""
    unmasked = task.written(model, rows)
    base = task.statistics(rows, unmasked)
    statistics = np.empty((len(variants), *base.shape))
    if fast:
        for index, outputs in enumerate(_rewritten(model, task, rows, unmasked, variants)):
            statistics[index] = _statistics(task, rows, unmasked, base, outputs)
    else:
        for index, variant in enumerate(variants):
            with masked(model, locate(model).mask(off=variant.off)):
                statistics[index] = task.statistics(rows, task.written(model, rows))
            report(index + 1)
    return {"base": base, "variants": statistics}


def _rewritten(
    model: nn.Module, task: Translation, rows: np.ndarray, unmasked: list[list[int]], variants: Sequence[Variant]
) -> list[list[list[int]]]:
    """The outputs of each variant for some examples, starting from those of the unmasked model.

    The first check of the drafts runs site by site and skips the layers below. Rows that it does not complete are
    collected over all variants and decoded together, each row with the mask of its variant.
    """
    outputs: list[list[list[int]]] = [[[] for _ in rows] for _ in variants]
    open_rows: list[tuple[int, int, list[int]]] = []  # variant, index in rows, next draft
    with remembered(model, len(rows)) as memory:
        task.drafted(model, rows, unmasked).improve(model)
    for site, places in _groups(model, variants, len(rows) * int(task.lengths[rows].max())):
        drafts = task.drafted(model, np.tile(rows, len(places)), unmasked * len(places))
        gate = _gate(site, [variants[index] for index in places], len(rows))
        with _changed(model, memory, site, gate, len(places)):
            drafts.improve(model)
        for number, ids in enumerate(drafts.outputs):
            outputs[places[number // len(rows)]][number % len(rows)] = ids
        for number, draft in zip(drafts.pending_P.tolist(), drafts.draft_PL.tolist(), strict=True):
            open_rows.append((places[number // len(rows)], number % len(rows), draft))
    for start in range(0, len(open_rows), _ROWS):
        group = open_rows[start : start + _ROWS]
        settled = _settle(model, task, rows[[index for _, index, _ in group]], group, variants)
        for (variant, index, _), ids in zip(group, settled, strict=True):
            outputs[variant][index] = ids
    return outputs


def _settle(
    model: nn.Module,
    task: Translation,
    rows: np.ndarray,
    group: list[tuple[int, int, list[int]]],
    variants: Sequence[Variant],
) -> list[list[int]]:
    """The outputs of rows that belong to different variants."""
    heads = locate(model).heads
    number = {head: index for index, head in enumerate(heads)}
    mask_BH = torch.ones(len(group), len(heads))
    for index, (variant, _, _) in enumerate(group):
        mask_BH[index, [number[head] for head in variants[variant].off]] = 0
    drafts = task.drafted(model, rows, [draft for _, _, draft in group])
    for _ in range(_RUNS):
        if len(drafts.pending_P):
            with masked(model, mask_BH[drafts.pending_P]):
                drafts.improve(model)
    if len(drafts.pending_P):
        with masked(model, mask_BH[drafts.pending_P]):
            drafts.finish(model)
    return list(drafts.outputs)


def _statistics(
    task: Translation, rows: np.ndarray, unmasked: list[list[int]], base: np.ndarray, written: list[list[int]]
) -> np.ndarray:
    """Statistics of the outputs; those equal to the unmasked model's are reused."""
    changed = [index for index, (before, other) in enumerate(zip(unmasked, written, strict=True)) if before != other]
    statistics = base.copy()
    if changed:
        statistics[changed] = task.statistics(rows[changed], [written[index] for index in changed])
    return statistics


def _gate(site: Site, variants: Sequence[Variant], rows: int) -> Tensor:
    """[V * B, H]: mask of a site's heads, one variant after the other."""
    heads = site.head_names()
    values_VH = [[float(head not in variant.off) for head in heads] for variant in variants]
    return torch.tensor(values_VH).repeat_interleave(rows, dim=0)


@contextmanager
def _changed(model: nn.Module, memory: Memory, site: Site, gate: Tensor, times: int) -> Iterator[None]:
    """Scale the site's heads by `gate` [rows, H] on a batch repeated per variant; layers below the site do not run."""
    with Hooks() as hooks, replayed(model, memory, site, times):
        hooks.change_input(site.entry, multiply(site, lambda: gate))
        yield


def _groups(model: nn.Module, variants: Sequence[Variant], tokens: int) -> Iterator[tuple[Site, list[int]]]:
    """Indices of variants of the same site that run together. tokens: of the batch."""
    sites, together = locate(model), _together(tokens)
    for key in dict.fromkeys(variant.site for variant in variants):
        places = [index for index, variant in enumerate(variants) if variant.site == key]
        for start in range(0, len(places), together):
            yield sites[key], places[start : start + together]


def _together(tokens: int) -> int:
    """Number of variants in one batch. tokens: of the batch of one."""
    return max(1, _TOKENS // max(1, tokens))


def _tokens(batch: Batch) -> int:
    """Tokens of the longest input; a batch whose inputs have different numbers of rows is not repeated."""
    tensors = named_tensors(batch)
    return max(value.numel() for value in tensors.values()) if len(by_example(batch)) == len(tensors) else _TOKENS
