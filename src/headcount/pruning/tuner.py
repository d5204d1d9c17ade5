"""Tuner: trains the remaining weights, and defines the recipe while heads are chosen. One file each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from headcount.pruning.adaptation import (
    adapting_recipe,
    learn,
    only_trained,
    ordinary_recipe,
    random_rate,
    trainable,
    usual_rate,
)
from headcount.pruning.pipeline import Data, Execution, Pipeline
from headcount.pruning.tuning import Tuning
from headcount.record.results.prune import TrainingStage
from headcount.tasks.task import Task
from headcount.training.recipe import Recipe

_OTHER_SEED = 1_000_003  # added after gates, for other random numbers and another order of the data


class Tuner:
    """Fine-tunes the current weights; subclasses override what differs."""

    replaces_weights = False  # `begin` sets random initial weights

    def begin(self, model: nn.Module, *, seed: int) -> None:
        """Change the model before training."""

    def trained_kinds(self, kinds: Sequence[str] | None) -> Sequence[str] | None:
        """The kinds of attention whose stack is trained; None: all."""
        return kinds

    def recipe(
        self,
        model: nn.Module,
        task: Task,
        tuning: Tuning,
        steps: int,
        *,
        falls: bool = True,
        seed: int = 0,
        after_gates: bool = False,
    ) -> Recipe:
        """The training recipe. falls: whether the rate falls to zero. after_gates: whether gates came before."""
        if self.replaces_weights and not after_gates:
            return ordinary_recipe(tuning, steps, tuning.rate or random_rate(model, task), falls=falls, seed=seed)
        return adapting_recipe(tuning, steps, tuning.rate or usual_rate(model, task), falls=falls, seed=seed)

    def tune(
        self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution, folder: Path, *, after_gates: bool
    ) -> TrainingStage:
        """Train a pruned model and return the training stage. after_gates: as in `recipe`."""
        tuning, seed = pipeline.tuning or Tuning(), pipeline.seed + _OTHER_SEED * after_gates
        task = trainable(data.train)
        with only_trained(model, self.trained_kinds(pipeline.kinds)) as trained:
            recipe = self.recipe(model, task, tuning, tuning.steps or 0, seed=seed, after_gates=after_gates)
            return learn(
                model, task, recipe, folder, execution, judge=data.measure, stage="fine-tuning", trained=trained
            )
