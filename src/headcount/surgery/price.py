"""Price: the cost of a model without some heads, in the unit of a budget. Counts or times pruned copies."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from headcount.errors import UsageError
from headcount.heads import HeadGrid
from headcount.hooks import original_module
from headcount.selection.budget import Budget, Unit
from headcount.selection.select import counted_layers, most_within, select
from headcount.selection.shape import FREE, Shape
from headcount.sites.inputs import example_batch, longest
from headcount.sites.locate import locate
from headcount.sites.running import evaluating, run
from headcount.surgery.cost import cost, head_parameters
from headcount.surgery.remove import remove

_REPEATS, _WARMUP = 9, 2


class Price:
    """Function from a mask to parameters, FLOPs or measured milliseconds of the whole pruned model."""

    def __init__(self, model: nn.Module, unit: Unit, *, length: int = 128) -> None:
        """length: tokens of the synthetic example."""
        model = original_module(model)
        self.unit, self._length = unit, longest(model, length)
        self._model = _without_data(model) if unit == "parameters" else model

    def __call__(self, mask: HeadGrid) -> float:
        small = remove(self._model, mask, verify=False)
        if self.unit == "parameters":
            return float(sum(parameter.numel() for parameter in small.parameters()))
        if self.unit == "milliseconds":
            return self._milliseconds(small)
        flops = cost(small, length=self._length).flops
        if flops is None:
            raise UsageError("The FLOPs of this model cannot be counted: it does not run on any generated test batch.")
        return float(flops)

    def _milliseconds(self, small: nn.Module) -> float:
        """Median time of a forward pass over one example on this machine."""
        batch = example_batch(small, batch=1, length=self._length, target=self._length, padded=False)
        seconds = []
        with evaluating(small):
            for _ in range(_WARMUP + _REPEATS):
                start = time.perf_counter()
                run(small, batch, synthetic=True)
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
                seconds.append(time.perf_counter() - start)
        return 1000 * float(np.median(seconds[_WARMUP:]))

    def limit(self, budget: Budget) -> float:
        """Highest cost of the pruned model."""
        return budget.limit(self(locate(self._model).mask()))


def _without_data(model: nn.Module) -> nn.Module:
    """A copy on the meta device: parameters are counted by their shapes. `.to("meta")` would untie tied weights."""
    empty: dict[int, object] = {
        id(weight): nn.Parameter(weight.detach().to("meta"), requires_grad=weight.requires_grad)
        for weight in model.parameters()
    }
    empty |= {id(buffer): buffer.to("meta") for buffer in model.buffers()}
    return copy.deepcopy(model, empty)


def in_heads(
    model: nn.Module,
    budget: Budget,
    *,
    kinds: Sequence[str] | None = None,
    length: int = 128,
    shape: Shape = FREE,
) -> Budget:
    """A budget in heads that meets this budget whichever heads are removed: those that save least are assumed first."""
    if budget.counts == "heads":
        return budget
    sites, price = locate(model), Price(model, budget.counts, length=length)
    saved = {site.key: head_parameters(site) for site in sites}
    most_saved = max(saved.values())
    # Removing the last query head of a group also removes a key/value head, so it comes last.
    last = {group[-1] for group in sites.groups if sites[group[0].site].group_size > 1}
    dearest = HeadGrid([(head, saved[head.site] + (1 + most_saved) * (head in last)) for head in sites.heads])

    def spent(keep: int) -> float:
        return price(select(dearest, Budget(heads=keep), kinds=kinds, shape=shape, groups=sites.groups))

    counts = counted_layers(sites.groups, kinds, shape).counts
    return Budget(heads=most_within(price.limit(budget), spent, counts, what=budget.counts))
