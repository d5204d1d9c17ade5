"""scratch: ordinary training from new random weights, a control (Voita et al. 2019, section 6.3 and footnote 8)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from headcount.pruning.adaptation import ordinary_recipe, random_rate
from headcount.pruning.tuner import Tuner
from headcount.pruning.tuning import Tuning
from headcount.tasks.task import Task
from headcount.training.recipe import Recipe
from headcount.training.transformer import forget


class Scratch(Tuner):
    """Trains the whole model from random weights."""

    replaces_weights = True

    def begin(self, model: nn.Module, *, seed: int) -> None:
        forget(model, seed=seed)

    def trained_kinds(self, kinds: Sequence[str] | None) -> None:
        return None

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
        if after_gates:
            return super().recipe(model, task, tuning, steps, falls=falls, seed=seed)
        return ordinary_recipe(tuning, steps, tuning.rate or random_rate(model, task), falls=falls, seed=seed)


TUNER = Scratch()
