"""Ascent: process a model site by site from the bottom up, with the full model's output at every site.

The full model runs once and its output at every site is stored. Then the pruned model runs up to the first site, that
site gets its new output projection, and the run continues to the next. Layers below are not computed again, so that
all of it costs about one more run over the data. Knows models and rows, not what is fitted to them.
Shapes: B batch, T tokens, N rows (tokens without padding), A = heads of a site x head size, K = remaining heads x
head size, O outputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn

from headcount import processes
from headcount.errors import UsageError
from headcount.hooks import Hooks
from headcount.probes.inputs import Inputs, inputs_of
from headcount.probes.padding import real_tokens
from headcount.probes.projections import Projection, projected
from headcount.probes.replay import Memory, layers_of, skipped, watched
from headcount.progress import Progress, silent
from headcount.sites.locate import locate
from headcount.sites.running import evaluating, seed_generators
from headcount.sites.site import Site, SiteKey
from headcount.surgery.compensations.compensation import Calibration, columns
from headcount.surgery.compensations.moments import Moments
from headcount.surgery.spill import ROOM, Spill
from headcount.tasks.batch import Batch, has_rows, rows_of
from headcount.tasks.task import Task

HELD_OUT = 5  # every fifth example is held out, or the last of fewer, to choose the strength of the ridge on


class _Arrived(Exception):
    """Raised to stop the run at a site; not an error."""


@dataclass
class _Way:
    """The way of one batch through the model."""

    calls: dict[SiteKey, int]  # of the sites it reaches, in this order
    runs: int  # of the model
    layers: list[str]  # layers that run once, whose stored output can replace them


@dataclass(frozen=True)
class _Context:
    """The outputs of the heads of a site in one run, at positions that are not padding."""

    rows_NA: Tensor
    real_BT: Tensor  # bool: the positions of the rows


class Ascent:
    """One ascent through a model over the data of a task; `restart` begins another one in the same block."""

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        *,
        keys: Sequence[SiteKey] | None = None,
        room: int = ROOM,
        progress: Progress = silent,
    ) -> None:
        """keys: the sites to stop at. By default all that have heads. room: bytes of activations to hold in memory."""
        self._model, self._task, self._progress = model, task, progress
        self._wanted = None if keys is None else set(keys)
        self._aside = Spill(room)
        self._sites: list[Site] = []
        self._ways: dict[int, _Way] = {}  # by index of the batch, of all processes
        # by index of the batch: layers that are not computed again; one output per chain is stored
        self._settled: dict[int, dict[str, None]] = {}
        self._means: dict[SiteKey, tuple[Tensor, Tensor]] = {}  # outputs of heads: over all rows, and those of the fit

    def __enter__(self) -> Self:
        if next(iter(self._task.batches()), None) is None:
            raise UsageError("The task has no batches: there is nothing to calibrate on.")
        self._every = _held_out_every(self._task)
        self._target()
        return self

    def __exit__(self, *_: object) -> None:
        self._aside.__exit__()

    @property
    def sites(self) -> list[Site]:
        """The sites to stop at that some batch reaches, from the bottom up: in the order in which the model does."""
        return list(self._sites)

    def times_in_run(self, site: Site) -> int:
        """How often one run of the model reaches a site, with the same tokens: several times if layers share it."""
        return max((way.calls.get(site.key, 0) // way.runs for way in self._ways.values() if way.runs), default=1) or 1

    def restart(self) -> None:
        """Start again from the lowest site, after projections have changed."""
        self._settled.clear()

    def calibrate(
        self, site: Site, keep: Sequence[int], projections: Mapping[SiteKey, Projection], *, intercept: bool
    ) -> Calibration:
        """Run the pruned model up to a site, and pair the outputs of its heads with the output of the full site.

        keep: indices of the remaining heads. projections: of the pruned model, below this site.
        """
        projection, inputs = Projection.of(site), columns(list(keep), site.head_dim)
        device = projection.weight_OK.device
        fit, held_out = (Moments.none(len(inputs), len(projection.weight_OK), device) for _ in range(2))
        # A module shared by several layers is reached again before it is fitted: until then its heads are masked.
        below = {**projections, site.key: masked_projection(projection, inputs)}
        for number, offset, batch in self._batches():
            if site.key not in self._ways[number].calls:
                continue
            contexts = self._climb(number, batch, site, below)
            targets = self._aside.get((site.key, number))
            for context, target_NO in zip(contexts, targets, strict=True):
                x_NK, out_N = context.rows_NA[:, inputs], self._held_out(context.real_BT, offset, batch)
                fit.add(x_NK[~out_N], target_NO[~out_N])
                held_out.add(x_NK[out_N], target_NO[out_N])
        self._progress("compensating", self._sites.index(site) + 1, len(self._sites))
        fit, held_out, (mean_A, fit_mean_A) = fit.shared(), held_out.shared(), self._means[site.key]
        if not float(fit.count):
            fit, held_out, fit_mean_A = held_out, fit, mean_A  # the only example was held out
        return Calibration(fit, held_out, mean_A, fit_mean_A, projection, tuple(keep), site.head_dim, intercept)

    def _target(self) -> None:
        """Run the full model over all data and store the output of every site and the mean outputs of its heads.

        Batches may reach different sites, such as those of texts and of images.
        """
        sites = {site.key: site for site in locate(self._model) if site.num_heads}
        layers = layers_of(sites.values())
        needed = {key: site for key, site in sites.items() if self._wanted is None or key in self._wanted}
        weights = {key: Projection.of(site).weight_OK for key, site in needed.items()}
        fit, held_out = (
            {key: Moments.none(weight_OK.shape[1], 0, weight_OK.device) for key, weight_OK in weights.items()}
            for _ in range(2)
        )
        contexts: dict[SiteKey, list[_Context]] = {}
        outputs: dict[SiteKey, list[Tensor]] = {}
        runs: Counter[str] = Counter()
        with evaluating(self._model), inputs_of(self._model) as inputs, Hooks() as hooks:

            def see(site: Site, context_BTA: Tensor) -> None:
                contexts.setdefault(site.key, []).append(self._context(site, context_BTA, inputs))

            hooks.see_call(self._model, partial(runs.update, ["model"]))
            for site in needed.values():
                hooks.see_input(site.output, partial(see, site))
                hooks.change_output(site.output, partial(_append, outputs, site.key))
            total = sum(1 for _ in self._batches())
            for count, (number, offset, batch) in enumerate(self._batches(), start=1):
                contexts.clear()
                outputs.clear()
                runs.clear()
                inputs.begin(batch)
                seed_generators(self._model, number)
                memory = Memory()
                with watched(self._model, layers, memory, _chain):
                    self._task.nll(self._model, batch)
                calls = {key: len(reached) for key, reached in contexts.items()}
                once = [layer for layer, times in memory.calls.items() if times == 1]
                self._ways[number] = _Way(calls, runs.total(), once)
                for key, reached in contexts.items():
                    pairs = zip(outputs[key], reached, strict=True)
                    self._aside.put((key, number), [output[context.real_BT] for output, context in pairs])
                    for context in reached:
                        rows_NA, out_N = context.rows_NA.double(), self._held_out(context.real_BT, offset, batch)
                        for sums, chosen_N in ((fit, ~out_N), (held_out, out_N)):
                            sums[key].x_K.add_(rows_NA[chosen_N].sum(0))
                            sums[key].count.add_(chosen_N.sum())
                self._progress("full model", count, total)
        self._ways = {number: way for ways in processes.gather(self._ways) for number, way in ways.items()}
        order = _joint_order([list(self._ways[number].calls) for number in sorted(self._ways)])
        self._sites = [needed[key] for key in order]
        for key in order:
            fitted = fit[key].shared()
            self._means[key] = (fitted + held_out[key].shared()).means[0], fitted.means[0]

    def _climb(
        self, number: int, batch: Batch, site: Site, projections: Mapping[SiteKey, Projection]
    ) -> list[_Context]:
        """Inputs of the site's output projection, call by call. Layers that ended before are settled."""
        model, memory, way = self._model, Memory(), self._ways[number]
        contexts: list[_Context] = []
        settled = self._settled.setdefault(number, {})
        aside = {chain: self._aside.get((chain, number)) for chain in {_chain(layer) for layer in settled}}
        outputs = {layer: aside[_chain(layer)] for layer in settled}
        climbed = [layer for layer in way.layers if layer not in settled]

        def arrive(context_BTA: Tensor) -> None:
            contexts.append(self._context(site, context_BTA, inputs))
            if len(contexts) == way.calls[site.key]:
                raise _Arrived

        with (
            evaluating(model), projected(model, projections), skipped(model, outputs),
            watched(model, climbed, memory, _chain), inputs_of(model) as inputs, Hooks() as hooks, suppress(_Arrived),
        ):  # fmt: skip
            inputs.begin(batch)
            seed_generators(model, number)
            hooks.see_input(site.output, arrive)
            self._task.nll(model, batch)
        for chain, output in memory.outputs.items():
            self._aside.put((chain, number), output)
        settled |= dict.fromkeys(memory.ended)
        return contexts

    def _batches(self) -> Iterator[tuple[int, int, Batch]]:
        """(index, index of the first example, batch) of the batches of this process."""
        offset = 0
        for number, batch in enumerate(self._task.batches()):
            if processes.is_mine(number):
                yield number, offset, batch
            offset += _examples(batch)

    def _context(self, site: Site, context_BTA: Tensor, inputs: Inputs) -> _Context:
        heads_BTHD = context_BTA.unflatten(-1, (site.num_heads, site.head_dim))
        real_BT = real_tokens(self._model, site, heads_BTHD, inputs.now).bool()
        return _Context(context_BTA[real_BT], real_BT)

    def _held_out(self, real_BT: Tensor, offset: int, batch: Batch) -> Tensor:
        """[N]: whether a row belongs to a held-out example, which of multiple choice has several rows of B."""
        example_B = torch.arange(len(real_BT), device=real_BT.device) * _examples(batch) // len(real_BT)
        out_B = (offset + example_B) % self._every == self._every - 1
        return out_B.reshape(-1, *(1,) * (real_BT.dim() - 1)).expand_as(real_BT)[real_BT]


def _joint_order(orders: Sequence[Sequence[SiteKey]]) -> list[SiteKey]:
    """One order of the sites of all batches: a site that no earlier batch reaches comes right before the next one."""
    joint: list[SiteKey] = []
    for order in orders:
        index = len(joint)
        for key in reversed(order):
            if key in joint:
                index = joint.index(key)
            else:
                joint.insert(index, key)
    return joint


def _chain(layer: str) -> str:
    """The list of layers that contains a layer; each takes the output of the one before."""
    return layer.rpartition(".")[0]


def masked_projection(projection: Projection, columns_K: Tensor) -> Projection:
    """A projection with zeros in all other columns."""
    weight_OA = torch.zeros_like(projection.weight_OK)
    weight_OA[:, columns_K] = projection.weight_OK[:, columns_K]
    return Projection(weight_OA, projection.bias_O)


def _examples(batch: Batch) -> int:
    """Number of examples of a batch; one without tensors counts as one."""
    return rows_of(batch) if has_rows(batch) else 1


def _held_out_every(task: Task) -> int:
    """HELD_OUT, or the number of examples if there are fewer: without a held-out one the fit could not be judged."""
    examples = 0
    for batch in task.batches():
        examples += _examples(batch)
        if examples >= HELD_OUT:
            return HELD_OUT
    return examples


def _append(table: dict[SiteKey, list[Tensor]], key: SiteKey, value: Tensor) -> None:
    table.setdefault(key, []).append(value)
