"""Price: the cost of a model without some heads, in the unit of a budget. Counts or times pruned copies."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import nn

from headcount import journal, processes
from headcount.errors import UsageError
from headcount.heads import Head, HeadGrid
from headcount.hooks import original_module
from headcount.selection.budget import Budget, Unit
from headcount.selection.select import counted_layers, most_within, select
from headcount.selection.shape import FREE, Shape
from headcount.sites.inputs import example_batch, longest
from headcount.sites.locate import keep_layouts, locate
from headcount.sites.projection import width_out
from headcount.sites.running import evaluating, run
from headcount.sites.site import SiteKey
from headcount.surgery.cost import cost, site_flops, site_parameters
from headcount.surgery.manifest import json_hash
from headcount.surgery.remove import remove
from headcount.timing import interleave

TIMES = "milliseconds.json"  # in a folder of states to resume from
_REPEATS, _WARMUP = 9, 2


class Price:
    """Function from a mask to parameters, FLOPs or measured milliseconds of the whole pruned model.

    A model is timed once: another time would differ, and a budget that was met would not be met any more.
    """

    def __init__(
        self, model: nn.Module, unit: Unit, *, length: int = 128, add_bias: bool = False, folder: Path | None = None
    ) -> None:
        """length: tokens of the synthetic example. folder: for measured times, which a resumed run reads again.

        add_bias: whether sites that lose heads get a bias if they have none, as compensation may add.
        """
        model = original_module(model)
        self.unit, self._length, self._add_bias = unit, longest(model, length), add_bias
        self._model = _without_data(model) if unit == "parameters" else model
        self._file = folder / TIMES if folder is not None and unit == "milliseconds" else None
        stored = journal.read_json(self._file) if self._file is not None and self._file.is_file() else {}
        self._known: dict[str, float] = processes.gather(stored)[0]  # of the first process; by mask

    def __call__(self, mask: HeadGrid) -> float:
        key = json_hash([str(head) for head in mask.kept])
        if key not in self._known:
            self._known[key] = processes.gather(self._cost(mask))[0]
            if self._file is not None and processes.is_main():
                journal.write_json(self._file, self._known)
        return self._known[key]

    def _cost(self, mask: HeadGrid) -> float:
        small = remove(self._model, mask, verify=False)
        if self.unit == "parameters":
            return float(sum(parameter.numel() for parameter in small.parameters()) + self._added(mask))
        if self.unit == "milliseconds":
            return self._milliseconds(small)
        flops = cost(small, length=self._length).flops
        if flops is None:
            raise UsageError("The FLOPs of this model cannot be counted: it does not run on any generated test batch.")
        return float(flops)

    def _added(self, mask: HeadGrid) -> int:
        """Parameters of added biases."""
        without = [site for site in locate(self._model) if self._add_bias and site.output.bias is None]
        return sum(width_out(site.output) for site in without if not all(mask[head] for head in site.head_names()))

    def _milliseconds(self, small: nn.Module) -> float:
        """Median time of a forward pass over one example on this machine."""
        batch = example_batch(small, batch=1, length=self._length, target=self._length, padded=False)
        with evaluating(small):
            times = interleave({"model": lambda: run(small, batch, synthetic=True)}, repeats=_REPEATS, warmup=_WARMUP)
        return 1000 * times.median("model")

    def limit(self, budget: Budget) -> float:
        """Highest cost of the pruned model."""
        return budget.limit(self(locate(self._model).mask()))

    def check(self, budget: Budget, kinds: Sequence[str] | None = None) -> None:
        """Raise if the model costs more than the budget even without any head of these kinds."""
        sites = locate(self._model)
        bare = sites.mask(off=sites.of_kinds(kinds))
        most_within(self.limit(budget), lambda _: self(bare), [0], what=budget.counts)

    def savings(self, kinds: Sequence[str] | None = None) -> HeadGrid:
        """What the removal of each head of these kinds saves at its site; the others have 0.

        Heads of a group save the same, and the last one its key/value head too. Times are too noisy to be compared
        head by head: FLOPs stand for milliseconds.
        """
        sites, spent_by_site = locate(self._model), self._by_site(self._model)
        counted = [group for group in sites.groups if kinds is None or group[0].kind in kinds]
        largest = {group[0].site: group for group in sorted(counted, key=len)}
        by_head = self._saved(spent_by_site, [group[0] for group in largest.values()])
        by_group = self._saved(spent_by_site, [head for group in largest.values() for head in group])
        values = dict.fromkeys(sites.heads, 0.0)
        for *earlier, last in counted:
            site = last.site
            values |= dict.fromkeys(earlier, by_head[site])
            values[last] = by_group[site] - (len(largest[site]) - 1) * by_head[site]
        return HeadGrid(list(values.items()))

    def _saved(self, spent_by_site: Mapping[SiteKey, float], off: Sequence[Head]) -> dict[SiteKey, float]:
        """What every site costs less without these heads."""
        without = self._by_site(remove(self._model, locate(self._model).mask(off=off), verify=False))
        return {site: spent - without.get(site, 0.0) for site, spent in spent_by_site.items()}

    def _by_site(self, model: nn.Module) -> Mapping[SiteKey, float]:
        """FLOPs of each site; its parameters if these are the unit, or FLOPs cannot be counted."""
        flops = site_flops(model, length=self._length) if self.unit != "parameters" else {}
        return flops or {site.key: site_parameters(site) for site in locate(model)}


def _without_data(model: nn.Module) -> nn.Module:
    """A copy on the meta device: parameters are counted by their shapes. `.to("meta")` would untie tied weights."""
    empty: dict[int, object] = {
        id(weight): nn.Parameter(weight.detach().to("meta"), requires_grad=weight.requires_grad)
        for weight in model.parameters()
    }
    empty |= {id(buffer): buffer.to("meta") for buffer in model.buffers()}
    shapes = copy.deepcopy(model, empty)
    keep_layouts(locate(model), shapes)
    return shapes


def in_heads(
    model: nn.Module,
    budget: Budget,
    *,
    kinds: Sequence[str] | None = None,
    length: int = 128,
    shape: Shape = FREE,
    add_bias: bool = False,
    folder: Path | None = None,
) -> Budget:
    """A budget in heads that meets this budget whichever heads are removed: those that save least are assumed first.

    add_bias, folder: as in `Price`.
    """
    if budget.counts == "heads":
        return budget
    sites, price = locate(model), Price(model, budget.counts, length=length, add_bias=add_bias, folder=folder)
    savings = price.savings(kinds)

    def spent(keep: int) -> float:
        return price(select(savings, Budget(heads=keep), kinds=kinds, shape=shape, groups=sites.groups))

    counts = counted_layers(sites.groups, kinds, shape).counts
    return Budget(heads=most_within(price.limit(budget), spent, counts, what=budget.counts))
