"""run: execute a pipeline (choose, compensate, remove, tune) and record it."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from headcount.errors import VerificationError
from headcount.heads import Head, HeadGrid
from headcount.probes.masks import masked
from headcount.pruning.adaptation import full_precision_accelerator, trainable
from headcount.pruning.choosers.given import Given
from headcount.pruning.pipeline import Budgets, Choice, Data, Execution, Pipeline
from headcount.pruning.ranking import Step
from headcount.pruning.tuner import Tuner
from headcount.pruning.tuning import tuners
from headcount.record import Record, Signature
from headcount.record.result import Quality as Measured
from headcount.record.results.prune import ChoiceDetails, Costs, Pruning, Qualities, Seconds, TrainingStage
from headcount.selection.budget import Budget
from headcount.selection.select import counted_layers
from headcount.sites.fingerprint import model_seed, weight_hash
from headcount.sites.locate import locate
from headcount.statistics import Comparison
from headcount.surgery.compensate import Compensation, compensate
from headcount.surgery.cost import cost
from headcount.surgery.exercise import exercise
from headcount.surgery.plan import check_removable, obstacle
from headcount.surgery.price import in_heads
from headcount.surgery.remove import remove
from headcount.tasks.distilled import distilled
from headcount.tasks.overlap import Examples, Identified, measured_on
from headcount.tasks.quality import Quality
from headcount.tasks.task import Task

_USUAL = Execution()


@dataclass(frozen=True)
class Pruned:
    """Result of `hc.prune`.

    Attributes:
        model: The pruned model.
        mask: Mask over the heads of the original model, 1 for those that were kept.
        record: Quality at every stage, costs, times and settings, as a `Record`.
        chosen_on: Hashes of the examples that heads were chosen, calibrated or trained on.
    """

    model: nn.Module
    mask: HeadGrid
    record: Record[Pruning]
    chosen_on: tuple[Examples, ...] = ()


@torch.inference_mode(False)  # modes of the caller, in which nothing can be trained
@torch.enable_grad()
def run(pipeline: Pipeline, model: nn.Module, data: Data, execution: Execution = _USUAL) -> Pruned:
    """Prune a model. The original is not changed unless execution.inplace is set.

    If verification fails, the record has a `fault` and nothing is tuned.
    """
    counted_heads(model, pipeline.kinds)
    check_any_removable(model, pipeline.kinds)
    requested = pipeline.keep
    if isinstance(requested, Budget) and not pipeline.chooser.any_budget:
        keep = in_heads(
            model, requested, kinds=pipeline.kinds, length=pipeline.length, shape=pipeline.shape,
            add_bias=pipeline.add_bias, folder=execution.folder,
        )  # fmt: skip
        pipeline = replace(pipeline, keep=keep)
    pipeline = replace(pipeline, keep=_fitted(model, pipeline))
    if isinstance(pipeline.chooser, Given):
        check_shape(pipeline, model, pipeline.chooser.mask(model))
    if execution.verify:
        exercise(model)  # fails early if the model cannot be verified
    if pipeline.trains:
        full_precision_accelerator()  # fails early if there is another
    weights = weight_hash(model)
    seen = tuple(map(Examples.of, pipeline.seen(data)))  # fails early if data is missing
    stages = _Stages(pipeline, data, execution, model_seed(weights, pipeline.seed))
    small, mask, parts = stages.take(model)
    _warn_of_excess(requested, parts.cost)
    measured = data.measure if parts.measured_on else None
    used, seed = data.train or data.choose or measured, pipeline.seed if pipeline.random else None
    arguments = _arguments(pipeline, requested, measured)
    signature = Signature("", weights, used.fingerprint if used else "", seed, arguments)
    return Pruned(small, mask, Record("prune", signature, parts), seen)


def _arguments(pipeline: Pipeline, requested: Budgets | None, measured: Task | None) -> dict[str, Any]:
    """The arguments of the record; with the requested budget if it does not count heads."""
    priced = isinstance(requested, Budget) and requested.counts != "heads"
    further = {"keep": str(requested)} if priced else {}
    return {**pipeline.to_plain(), **further, **({"measured_on": measured.fingerprint} if measured else {})}


def _warn_of_excess(requested: Budgets | None, costs: Costs) -> None:
    """Warn if the pruned model costs more than requested. Times are not measured again: another would differ."""
    if not isinstance(requested, Budget) or requested.counts not in ("parameters", "flops"):
        return
    before, after = (getattr(cost, requested.counts) for cost in (costs.before, costs.after))
    if before is not None and after is not None and after > requested.limit(before):
        warnings.warn(
            f"The pruned model costs {after:,} {requested.counts}; the budget {requested} allows "
            f"{requested.limit(before):,.0f}. Give a smaller budget.",
            stacklevel=2,
        )


def check_any_removable(model: nn.Module, kinds: Sequence[str] | None) -> None:
    """Raise, before any work, if no head of these kinds can be removed."""
    sites = [site for site in locate(model) if site.num_heads and (not kinds or site.kind in kinds)]
    if all(obstacle(model, site) for site in sites):
        check_removable(model, sites[0])


def _fitted(model: nn.Module, pipeline: Pipeline) -> Budgets | None:
    """Budgets of heads as numbers that the shape allows. Raises before the model runs if there are none."""
    keep, shape, groups = pipeline.keep, pipeline.shape, locate(model).groups
    if shape.free or keep is None:
        return keep
    if isinstance(keep, Budget):
        if keep.counts != "heads":
            return keep
        return Budget(heads=counted_layers(groups, pipeline.kinds, shape).fitted(keep))
    return {kind: Budget(heads=counted_layers(groups, (kind,), shape).fitted(part)) for kind, part in keep.items()}


def check_shape(pipeline: Pipeline, model: nn.Module, mask: HeadGrid) -> None:
    """Raise if the chosen heads do not have the required shape."""
    groups = [group for group in locate(model).groups if not pipeline.kinds or group[0].kind in pipeline.kinds]
    pipeline.shape.check(mask, groups)


@dataclass
class _Stages:
    """The stages of one pipeline and their results."""

    pipeline: Pipeline
    data: Data
    execution: Execution
    training_seed: int  # of gates, new weights and fine-tuning; scores that are random have their own for each model
    qualities: dict[str, Quality] = field(default_factory=dict)  # before, cut, after
    seconds: dict[str, float] = field(default_factory=lambda: {"choosing": 0.0, "tuning": 0.0})

    def take(self, model: nn.Module) -> tuple[nn.Module, HeadGrid, Pruning]:
        pipeline, learning = self.pipeline, self.data
        if pipeline.trains:
            share = pipeline.tuning.distill if pipeline.tuning else 0.0
            train = distilled(trainable(self.data.train), model, share)
            learning = replace(self.data, train=train, choose=self.data.choose or self.data.train)
        whole_cost = cost(model, length=pipeline.length)
        if self.execution.measured == "steps":
            self._measure("before", model)
        choice = self._choose(model, learning)
        curve = self._curve(model, choice)
        replaced = self._replace_weights(model, choice)
        compensation, small, fault = self._remove(model, replaced)
        if curve and compensation is None and replaced is choice and not fault:
            self.qualities["cut"] = curve[-1].quality  # masked and pruned model are equivalent
        else:
            self._measure("cut", small)
        if "before" in self.qualities and not curve and replaced is choice and not (pipeline.chooser.trains or fault):
            curve = [Step.of(choice.mask, self.qualities["cut"])]
        training = {"gates": choice.training} if choice.training else {}
        if pipeline.tunes and not fault:
            training["tuning"] = self._tune(small, learning, after_gates=bool(choice.training))
        if "tuning" in training:
            self._measure("after", small)
        elif "cut" in self.qualities:
            self.qualities["after"] = self.qualities["cut"]
        costs = Costs(whole_cost, cost(small, length=pipeline.length))
        return small, choice.mask, self._result(choice, curve, compensation, fault, training, costs)

    @property
    def judge(self) -> Task | None:
        """The data to measure quality on; by default that heads were chosen on, if nothing is trained."""
        if self.execution.measured == "nothing":
            return None
        if self.data.measure is not None or self.pipeline.trains or not self.pipeline.chooser.needs_data:
            return self.data.measure
        return self.pipeline.chooser.data_of(self.data, self.pipeline)

    def _measure(self, name: str, model: nn.Module) -> None:
        if self.judge is not None:
            self.qualities[name] = self.judge.quality(model)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[stage] += time.perf_counter() - started

    def _choose(self, model: nn.Module, learning: Data) -> Choice:
        with self._timed("choosing"):
            pipeline = self._training_pipeline if self.pipeline.chooser.trains else self.pipeline
            choice = pipeline.chooser.choose(model, learning, pipeline, self.execution)
        check_shape(self.pipeline, model, choice.mask)
        if choice.seconds is not None:
            self.seconds["choosing"] = choice.seconds
        return choice

    def _replace_weights(self, model: nn.Module, choice: Choice) -> Choice:
        """The same heads with the initial weights of the tuner, if it replaces weights."""
        tuner = self._tuner
        if tuner is None or not tuner.replaces_weights or choice.training:
            return choice
        fresh = model if self.execution.inplace else copy.deepcopy(model)
        tuner.begin(fresh, seed=self.training_seed)
        return replace(choice, model=fresh)

    @property
    def _training_pipeline(self) -> Pipeline:
        """The pipeline with the seed of its training."""
        return replace(self.pipeline, seed=self.training_seed)

    @property
    def _tuner(self) -> Tuner | None:
        return tuners[self.pipeline.tuning.tuner] if self.pipeline.tuning else None

    def _curve(self, model: nn.Module, choice: Choice) -> list[Step]:
        """Quality after each step, if heads are removed in several steps."""
        steps: list[Step] = []
        if self.judge is None or self.execution.measured != "steps":
            return steps
        for number, mask in enumerate(choice.masks, start=1):
            with masked(model, mask):
                steps.append(Step.of(mask, self.judge.quality(model)))
            self.execution.progress("measuring steps", number, len(choice.masks))
        return steps

    def _remove(self, model: nn.Module, choice: Choice) -> tuple[Compensation | None, nn.Module, str]:
        """The compensation, the pruned model, and the fault that verification found, if any."""
        pipeline, fitted = self.pipeline, None
        inplace = self.execution.inplace or choice.model is not model
        with self._timed("choosing"):
            if pipeline.compensate != "none":
                fitted = compensate(
                    choice.model, choice.mask, self.data.calibrating, pipeline.compensate, add_bias=pipeline.add_bias,
                    progress=self.execution.progress,
                )  # fmt: skip
            try:
                small = remove(
                    choice.model, choice.mask, verify=self.execution.verify, inplace=inplace,
                    compensate=fitted if fitted is not None else "none",
                )  # fmt: skip
            except VerificationError as error:
                return fitted, error.model, error.reason
        return fitted, small, ""

    def _tune(self, small: nn.Module, learning: Data, *, after_gates: bool) -> TrainingStage:
        tuner = self._tuner or Tuner()
        with self.execution.stage_folder("tune") as folder:
            took = tuner.tune(small, learning, self._training_pipeline, self.execution, folder, after_gates=after_gates)
        self.seconds["tuning"] = took.seconds
        return took

    def _result(
        self,
        choice: Choice,
        curve: Sequence[Step],
        compensation: Compensation | None,
        fault: str,
        training: Mapping[str, TrainingStage],
        costs: Costs,
    ) -> Pruning:
        """The result for the record."""
        mask, pipeline, judge = choice.mask, self.pipeline, self.judge
        chosen_on: list[Identified] = [*self.execution.chosen_before, *pipeline.seen(self.data)]
        quality = {name: measured_quality(value) for name, value in self.qualities.items()}
        steps = [Step.of(mask.map(lambda _: 1), self.qualities["before"]), *curve] if curve else []
        return Pruning(
            method=pipeline.chooser.name,
            pipeline=pipeline.name,
            removed_heads=tuple(str(head) for head in mask.heads if not mask[head]),
            num_heads=len(mask),
            kept_by_kind={kind: sum(head.kind == kind for head in mask.kept) for kind in mask.kinds},
            heads=tuple(str(head) for head in mask.kept),
            verified=self.execution.verify and not fault,
            quality=Qualities(**quality),
            statistics={name: as_rows(value.statistics) for name, value in self.qualities.items()},
            seconds=Seconds(**self.seconds, total=sum(self.seconds.values())),
            cost=costs,
            choice_details=choice.details or ChoiceDetails(),
            metric=judge.metric.name if judge is not None else None,
            higher_is_better=judge.metric.higher_is_better if judge is not None else None,
            change=self._change(),
            measured_on=measured_on(chosen_on, judge) if judge is not None else None,
            curve=tuple(step.to_result(pipeline.kinds or mask.kinds) for step in steps) or None,
            compensation=replace(compensation.to_result(), quality=quality.get("cut")) if compensation else None,
            training=training,
            fault=fault or None,
        )

    def _change(self) -> Comparison | None:
        """The quality at the end less that of the whole model, if both were measured."""
        before, after = (self.qualities.get(name) for name in ("before", "after"))
        return after.against(before) if before is not None and after is not None else None


def measured_quality(quality: Quality) -> Measured:
    """A quality with its interval, for a record."""
    return Measured(quality.metric.name, *quality.interval())


def as_rows(statistics: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """The statistics of each example [N, C], for later paired comparisons."""
    return tuple(tuple(row) for row in statistics.tolist())


def counted_heads(model: nn.Module, kinds: Sequence[str] | None) -> list[Head]:
    """The heads that may be removed. Raises if the model has no such kind."""
    return list(locate(model).of_kinds(kinds))
