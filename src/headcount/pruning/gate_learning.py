"""Gate learning, shared by l0 and subset: gates learn which heads to keep while the model adapts."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from headcount.heads import HeadGrid
from headcount.probes.gates import Gates, Group, attached, exact_mask
from headcount.probes.runs import check_running
from headcount.pruning.adaptation import learn, only_trained, trainable
from headcount.pruning.pipeline import Budgets, Choice, Data, Execution, Pipeline
from headcount.pruning.tuner import Tuner
from headcount.pruning.tuning import Tuning, tuners
from headcount.record.results.prune import BudgetMet, ChoiceDetails, GateSettings, GateStep
from headcount.record.results.prune import Gates as LearnedGates
from headcount.selection.budget import Budget
from headcount.selection.select import counted_layers, select
from headcount.selection.shape import Shape
from headcount.sites.locate import locate
from headcount.surgery.fold_gates import check_foldable, fold_open_gates
from headcount.surgery.plan import check_removable
from headcount.tasks.batch import Batch
from headcount.tasks.task import Task
from headcount.training.log import Log
from headcount.training.loop import LOG
from headcount.training.partner import Partner

_ROWS = 8  # of a batch that shows which heads run
_STEPS, _FROM_RANDOM = 150, 2200  # with tuning, the total is that of the preset tiny


def gate_steps(steps: int | None, pipeline: Pipeline) -> int:
    """Number of steps with gates; more from random weights."""
    tuning = pipeline.tuning or Tuning()
    return steps if steps is not None else _FROM_RANDOM if tuning.tuner == "scratch" else _STEPS


@dataclass(frozen=True)
class GateLearning:
    """Trains gates, and the weights with them."""

    begin: Callable[[nn.Module], Partner]  # creates the gates
    steps: int
    stage: str  # for progress
    settings: GateSettings  # for the record
    weights: bool = True  # train them with the gates (joint), or the gates alone (pipelined)

    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        """The heads whose gates stay open, and a copy of the model that was trained with them."""
        task, tuning = trainable(data.train), pipeline.tuning or Tuning()
        tuner: Tuner = tuners[tuning.tuner]
        live = model if execution.inplace else copy.deepcopy(model)
        tuner.begin(live, seed=pipeline.seed)
        partner = self.begin(live)
        gates = partner.gates
        _check_removable(live, gates)
        check_running(live, _small_batches(task), task.loss_sum, {head.kind for head in gates.heads})
        recipe = tuner.recipe(live, task, tuning, self.steps, falls=not pipeline.tunes, seed=pipeline.seed)
        kinds = tuner.trained_kinds(pipeline.kinds)
        with execution.stage_folder("gates") as folder:
            with only_trained(live, kinds, weights=self.weights) as trained, attached(live, gates, redraw=False):
                took = learn(
                    live, task, recipe, folder, execution, judge=data.measure, partner=partner, stage=self.stage,
                    trained=trained,
                )  # fmt: skip
            mask, by_rank = shaped_mask(live, gates, partner.groups, pipeline.shape)
            learned = self._described(partner, mask, by_rank, folder)
        fold_open_gates(live, gates)
        return Choice(mask, live, ChoiceDetails(gates=learned), training=took, seconds=took.seconds)

    def _described(self, partner: Partner, mask: HeadGrid, by_rank: int, folder: Path) -> LearnedGates:
        """The gates as stored in the record."""
        gates = partner.gates
        if not any(head in gates.heads for head in mask.kept) and any(mask.heads):
            warnings.warn(
                "Every gate has closed: no gated head is left. A smaller factor (lambda), fewer steps or a larger "
                "target (--keep) leaves some.",
                stacklevel=8,
            )
        reached = getattr(partner, "reached", None)
        return LearnedGates(
            values={str(head): value for head, value in gates.ranks().items()},
            means={str(head): value for head, value in gates.means().items()},
            settled=gates.settled(),
            reached=BudgetMet(int(reached[0]), float(reached[1])) if reached is not None and reached[0] else None,
            cut_by_rank=by_rank,
            trace=tuple(_step(line) for line in Log(folder / LOG).lines() if "open" in line),
            settings=self.settings,
        )


def shaped_mask(model: nn.Module, gates: Gates, budgets: Sequence[Group], shape: Shape) -> tuple[HeadGrid, int]:
    """The mask that meets the budgets in a shape, and the number of heads decided by rank, not by their gates.

    Without a budget, as many heads are kept as gates are open, or the nearest number that the shape allows.
    """
    if shape.free:
        return exact_mask(gates, budgets)
    gate_mask, ranks, site_groups = gates.mask(), gates.ranks(), locate(model).groups
    mask = gate_mask
    open_gates = Group("heads", list(range(len(gates.heads))), sum(gate_mask[head] for head in gates.heads))
    for budget in budgets or [open_gates]:
        members = {gates.heads[index] for index in budget.places}
        groups = [tuple(head for head in group if head in members) for group in site_groups]
        layers = counted_layers([group for group in groups if group], None, shape)
        keep = budget.keep if budgets else layers.nearest(budget.keep)
        scores = HeadGrid([(head, ranks[head]) for head in gates.heads if head in members])
        mask = mask.replace(dict(select(scores, Budget(heads=keep), shape=shape, groups=layers.groups).items()))
    return mask, sum(gate_mask[head] != mask[head] for head in mask.heads)


def _check_removable(model: nn.Module, gates: Gates) -> None:
    """Raise before training if heads cannot be removed."""
    gated = {head.site for head in gates.heads}
    for site in locate(model):
        if site.key in gated:
            check_removable(model, site)
    check_foldable(model, gates)


def _small_batches(task: Task) -> Iterator[Batch]:
    return (task.batch(rows) for rows in np.array_split(np.arange(len(task.lengths)), -(-len(task.lengths) // _ROWS)))


def _step(line: Mapping[str, Any]) -> GateStep:
    factors = line.get("lambda")
    return GateStep(
        line["step"], line["loss"], line["open"], line["settled"], expected=line.get("expected"),
        penalties=None if factors is None else tuple(factors) if isinstance(factors, list) else (factors,),
        temperature=line.get("temperature"),
    )  # fmt: skip


def head_counts(model: nn.Module, budget: Budgets | None, kinds: Sequence[str] | None) -> int | dict[str, int] | None:
    """A budget as numbers of heads: one for all gated heads, or one for each kind."""
    if budget is None:
        return None
    sites = locate(model)
    if isinstance(budget, Budget):
        return budget.of(len(sites.of_kinds(kinds)))
    return {kind: kind_budget.of(len(sites.of_kinds((kind,)))) for kind, kind_budget in budget.items()}
