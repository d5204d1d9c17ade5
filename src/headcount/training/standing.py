"""Standing: the progress of a training run. With weights and optimizer state it is enough to resume."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headcount.record.results.train import EpochMeasured
from headcount.training.recipe import Recipe


@dataclass
class Standing:
    """Counts and results so far; plain numbers."""

    step: int = 0  # finished, over all epochs
    epoch: int = 0  # finished
    epoch_steps: int = 0  # finished steps of the current epoch
    seconds: float = 0.0  # spent training, over all interruptions
    epochs: list[dict[str, Any]] = field(default_factory=list)  # what was measured after each epoch
    recent_losses: list[float] = field(default_factory=list)  # of steps that are not in the log yet
    loss_scale: dict[str, float] = field(default_factory=dict)  # state of the gradient scaler of fp16

    def best(self, watch: str) -> int:
        """Number of the best epoch so far, from 1; 0 before the first."""
        sign = -1.0 if watch == "loss" else 1.0
        values = [sign * epoch[watch] for epoch in self.epochs]
        return 1 + max(range(len(values)), key=values.__getitem__) if values else 0

    def epoch_results(self) -> tuple[EpochMeasured, ...]:
        """The results of all epochs, for a record."""
        return tuple(
            EpochMeasured(
                epoch["epoch"], epoch["step"], {name: epoch[name] for name in epoch if name not in ("epoch", "step")}
            )
            for epoch in self.epochs
        )

    def finished(self, recipe: Recipe) -> bool:
        if recipe.steps is not None and self.step >= recipe.steps:
            return True
        if recipe.epochs is not None and self.epoch >= recipe.epochs:
            return True
        return bool(recipe.patience) and self.epoch - self.best(recipe.watch) >= recipe.patience > 0
