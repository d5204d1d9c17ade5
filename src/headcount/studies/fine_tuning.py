"""Fine-tuning a model on a task: from a checkpoint and data to a checkpoint. Classification and language modelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from accelerate import Accelerator

from headcount import journal
from headcount.checkpoints.chosen_on import read_chosen_on
from headcount.errors import UsageError
from headcount.record import Record
from headcount.record.results.train import TrainingRun
from headcount.sites.fingerprint import config_hash, weight_hash
from headcount.studies.conclusion import conclude, earlier_record
from headcount.tasks.overlap import Examples
from headcount.tasks.task import Task, token_hash
from headcount.training.batching import epoch_steps
from headcount.training.recipe import Recipe
from headcount.training.run import Run, Watch

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# As for BERT: Devlin et al. 2019 fine-tune at rates of 2e-5 to 5e-5 for 2 to 4 epochs. Batch and warm-up here are for
# runs that give them in tokens and steps; otherwise they follow from the data (`examples` and `warmup`).
RECIPE = Recipe(batch=1500, chunk=1500, rate=5e-5, warmup=100, epochs=2, clip=1.0, average=1, smoothing=0.0)
EXAMPLES, WARMUP = 32, 0.06  # of a step; share of the run


@dataclass(frozen=True)
class FineTuningSettings:
    """Everything that decides the result; a folder is resumed only with the settings it was started with."""

    task: str
    start: str  # the initial model
    data: str
    recipe: Recipe = RECIPE
    limit: int | None = None
    max_length: int = 256
    precision: str = "no"
    dev_split: str = "dev"
    columns: Mapping[str, str | None] = field(default_factory=dict)  # of the texts and labels
    examples: int | None = EXAMPLES  # of a step on average; None: as the batch of the recipe in tokens allows
    warmup: float | None = WARMUP  # share of the steps; None: the steps of the recipe
    metric: str | None = None  # on the development data; the default of the task if None


def fine_tune(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    train: Task,
    dev: Task,
    out: Path,
    settings: FineTuningSettings,
    *,
    accelerator: Accelerator | None = None,
    watch: Watch | None = None,
    save_seconds: float = 60.0,
    snapshots: int = 0,
) -> Record[TrainingRun] | None:
    """Train a model on `train`, measured on `dev`, to the end of the recipe, resuming from the folder."""
    recipe = settings.recipe
    _check_watched(recipe, dev)
    accelerator = accelerator or Accelerator(mixed_precision=settings.precision)
    chosen_on = _chosen_on(settings.start, train)
    run = Run(out, settings, recipe, accelerator, watch or Watch(), save_seconds, snapshots, chosen_on)
    with run.claimed():
        return _fine_tune(model, tokenizer, train, dev, run)


def _fine_tune(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, train: Task, dev: Task, run: Run
) -> Record[TrainingRun] | None:
    settings, recipe, accelerator = run.settings, run.recipe, run.accelerator
    if accelerator.is_main_process:
        journal.claim(run.work, "data.json", {"train": train.fingerprint, "dev": dev.fingerprint})
        journal.claim(run.work, "start.json", {"weights": weight_hash(model), "tokens": token_hash(train)})
        journal.claim(run.work, "configuration.json", {"configuration": config_hash(model, writes=dev.writes)})
    accelerator.wait_for_everyone()
    earlier = earlier_record(run)
    if earlier is not None:
        return earlier if accelerator.is_main_process else None
    before = dev.held_out(model) if accelerator.is_main_process else {}

    train.smoothing = recipe.smoothing
    run.recipe = resolved_recipe(settings, train)
    standing = run.train(model, train, dev.held_out, width=model.config.hidden_size, tokenizer=tokenizer)
    texts = {"train": len(train.lengths), "dev": len(dev.lengths)}
    return conclude(run, standing, dev.held_out, tokenizer, dev, task=settings.task, texts=texts, before=before)


def _chosen_on(start: str, train: Task) -> tuple[Examples, ...]:
    """What the heads of a pruned model were chosen and are trained on, as of `prune --tune`; none if unpruned."""
    before = read_chosen_on(start)
    return (*before, Examples.of(train)) if before else ()


def _check_watched(recipe: Recipe, dev: Task) -> None:
    watched = {"loss", *dev.watched}
    if recipe.watch not in watched:
        raise UsageError(
            f"{dev.name} cannot be watched by {recipe.watch}: it is measured by {', '.join(sorted(watched))}. Watch "
            "one of these (--watch), or choose another metric (--metric)."
        )


def resolved_recipe(settings: FineTuningSettings, train: Task) -> Recipe:
    """The recipe for this data, with batch, number of steps and warm-up; the rate falls to zero by the last step."""
    recipe = settings.recipe
    if settings.examples is not None:
        tokens = max(1, round(settings.examples * float(train.lengths[:, 0].mean())))
        recipe = replace(recipe, batch=tokens, chunk=min(tokens, recipe.chunk))
    steps = recipe.steps
    if recipe.epochs is not None:
        epoch = len(epoch_steps(train.lengths, batch=recipe.batch, chunk=recipe.chunk, seed=recipe.seed, epoch=0))
        steps = min(steps or epoch * recipe.epochs, epoch * recipe.epochs)
    if steps is None:  # ends by patience, at an unknown step
        return recipe
    warmup = recipe.warmup if settings.warmup is None else round(settings.warmup * steps)
    warmup = min(max(1, warmup), steps)
    return replace(recipe, steps=steps, warmup=warmup, cooldown=recipe.cooldown or steps - warmup)
