"""Fine-tuning a model on a task: from a checkpoint and data to a checkpoint. Classification and language modelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import nn

from headcount import journal
from headcount.errors import UsageError
from headcount.record import Record, Signature
from headcount.sites.fingerprint import weight_hash
from headcount.tasks.task import Trainable
from headcount.training.batching import epoch_steps
from headcount.training.recipe import Recipe
from headcount.training.run import Run, Watch

# BERT's own: Devlin et al. 2019 fine-tune at rates of 2e-5 to 5e-5 for 2 to 4 epochs.
RECIPE = Recipe(batch=1500, chunk=1500, rate=5e-5, warmup=100, epochs=2, clip=1.0, average=1, smoothing=0.0)


@dataclass(frozen=True)
class Settings:
    """All that decides what comes out; a folder goes on only with the settings it was begun with."""

    task: str
    start: str  # the model to begin with
    data: str
    recipe: Recipe = RECIPE
    limit: int | None = None
    max_length: int = 256
    precision: str = "no"
    dev_split: str = "dev"
    columns: Mapping[str, str | None] = field(default_factory=dict)  # of the texts and labels


def fine_tune(
    model: Any,
    tokenizer: Any,
    train: Trainable,
    dev: Trainable,
    out: Path,
    settings: Settings,
    *,
    accelerator: Accelerator | None = None,
    watch: Watch | None = None,
    save_seconds: float = 60.0,
) -> Record:
    """Train a model on `train` to the end of the recipe, watched on `dev`, from wherever the folder stands."""
    recipe = settings.recipe
    if recipe.watch not in ("loss", *(["accuracy"] if settings.task == "classification" else [])):
        raise UsageError(f"{settings.task} cannot be watched by {recipe.watch}; loss is there for every task.")
    accelerator = accelerator or Accelerator(mixed_precision=settings.precision)
    run = Run(out, settings, recipe, accelerator, watch or Watch(), save_seconds)
    with run.claimed():
        return _fine_tune(model, tokenizer, train, dev, run)


def _fine_tune(model: Any, tokenizer: Any, train: Trainable, dev: Trainable, run: Run) -> Record:
    settings, recipe, accelerator = run.settings, run.recipe, run.accelerator
    if accelerator.is_main_process:
        journal.claim(run.work, "data.json", {"train": train.fingerprint, "dev": dev.fingerprint})
    accelerator.wait_for_everyone()
    before = dev.held_out(model) if accelerator.is_main_process else {}

    def judge(live: nn.Module) -> dict[str, float]:
        return dev.held_out(live)

    if hasattr(train, "smoothing"):
        train.smoothing = recipe.smoothing
    run.recipe = _to_the_end(recipe, train)
    progress = run.train(model, train, judge, width=model.config.hidden_size, tokenizer=tokenizer)
    record = Record(f"train {settings.task}", Signature(arguments=run.plain_settings()))
    if accelerator.is_main_process:
        chosen = run.choose(progress, judge)
        signature = Signature(
            settings.start, weight_hash(chosen.model), dev.fingerprint, recipe.seed, run.plain_settings()
        )
        parts = {
            "chosen": chosen.name,
            "candidates": chosen.candidates,
            "before": before,
            "epochs": progress.epochs,
            "steps": progress.step,
            "seconds": progress.seconds,
            "texts": {"train": len(train.lengths), "dev": len(dev.lengths)},
        }
        record = Record(f"train {settings.task}", signature, parts)
        run.finish(chosen.model, tokenizer, record)
    accelerator.wait_for_everyone()
    return record


def _to_the_end(recipe: Recipe, train: Trainable) -> Recipe:
    """The recipe with its number of steps known, so that the rate can fall to zero by the last of them."""
    if recipe.epochs is None or recipe.cooldown:
        return recipe
    epoch = len(epoch_steps(train.lengths, batch=recipe.batch, chunk=recipe.chunk, seed=recipe.seed, epoch=0))
    steps = min(recipe.steps or epoch * recipe.epochs, epoch * recipe.epochs)
    warmup = min(recipe.warmup, max(1, steps // 10))
    return replace(recipe, steps=steps, warmup=warmup, cooldown=steps - warmup)
