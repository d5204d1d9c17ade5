"""Adaptation: training during and after pruning: frozen weights and learning rates. Knows no gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedDataParallelKwargs
from torch import nn

from headcount.errors import UsageError
from headcount.pruning.pipeline import Execution
from headcount.pruning.tuning import Tuning
from headcount.record.results.prune import TrainingStage
from headcount.sites.locate import locate
from headcount.sites.running import eager_attention, full_precision
from headcount.tasks.task import Task
from headcount.training.loop import FROZEN, Loop, Report
from headcount.training.partner import Partner
from headcount.training.recipe import Recipe
from headcount.training.transformer import is_pre_norm

_WARMUP = 20  # steps, for a trained model
_LONG_WARMUP = 300  # from random weights


def adapting_recipe(tuning: Tuning, steps: int, rate: float, *, falls: bool, seed: int) -> Recipe:
    """Recipe for a trained model. falls: whether the rate falls to zero after warm-up."""
    warmup = min(tuning.warmup or min(_WARMUP, max(1, steps // 4)), steps)
    return _recipe(tuning, steps, rate, warmup, cooldown=steps - warmup if falls else 0, seed=seed)


def ordinary_recipe(tuning: Tuning, steps: int, rate: float | None, *, falls: bool, seed: int) -> Recipe:
    """Recipe for random weights, as in the presets. falls: whether the rate falls to zero over the last third."""
    warmup = min(tuning.warmup or min(_LONG_WARMUP, 1 + steps // 4), steps)
    return _recipe(tuning, steps, rate, warmup, cooldown=steps // 3 if falls else 0, seed=seed)


def _recipe(tuning: Tuning, steps: int, rate: float | None, warmup: int, *, cooldown: int, seed: int) -> Recipe:
    if steps < 1:
        raise UsageError(f"Training needs at least 1 step; got steps={steps}. Leave steps out for the default number.")
    return Recipe(
        batch=tuning.batch, chunk=min(tuning.chunk, tuning.batch), rate=rate, warmup=warmup, steps=steps,
        cooldown=cooldown, clip=tuning.clip, average=1, seed=seed,
    )  # fmt: skip


def usual_rate(model: nn.Module, task: Task) -> float:
    """Default rate: 3e-3 for translation models of width 96, less for wider ones; 5e-5, as for BERT, otherwise."""
    width = width_of(model)
    return 3e-3 * (96 / width) ** 0.5 if task.writes else 5e-5


def random_rate(model: nn.Module, task: Task) -> float | None:
    """Default rate from random weights: that of the presets for translation, else 5e-4.

    None: the schedule of Vaswani et al. 2017, for models with post-normalisation.
    """
    if not task.writes:
        return 5e-4
    return usual_rate(model, task) if is_pre_norm(model) else None


def width_of(model: nn.Module) -> int:
    config: Any = getattr(model, "config", None)
    width = getattr(config, "d_model", None) or getattr(config, "hidden_size", None)
    if not width:
        site = locate(model)[0]
        width = site.total * site.head_dim
    return int(width)


def trainable(task: Task | None) -> Task:
    if task is None:
        raise UsageError("This pipeline trains the model: give a task with training data.")
    if not task.trains:
        raise UsageError(
            f"This pipeline trains the model, but the task {task.name!r} has no training objective. Give another task."
        )
    return task


@contextmanager
def only_trained(model: nn.Module, kinds: Sequence[str] | None, *, weights: bool = True) -> Iterator[str]:
    """Freeze weights inside the block; yields a description of the trained weights.

    If only encoder self-attention of an encoder-decoder is gated, the encoder is trained, with the source embeddings
    unless the decoder shares them, and the decoder is frozen (Voita et al. 2019, section 6.2).
    weights: whether any weights are trained at all.
    """
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        description = _freeze(model, kinds, weights)
        if weights and not any(parameter.requires_grad for parameter in model.parameters()):
            raise UsageError(FROZEN)
        yield description
    finally:
        for parameter, trained in before:
            parameter.requires_grad_(trained)


def _freeze(model: nn.Module, kinds: Sequence[str] | None, weights: bool) -> str:
    if not weights:
        model.requires_grad_(False)
        return "gates only"
    if set(kinds or ()) != {"encoder"} or set(locate(model).kinds) == {"encoder"}:
        return "all weights"
    encoder: Any = model.get_encoder()  # type: ignore[operator]
    inside = {id(module) for module in encoder.modules()}
    outside = {
        id(parameter)
        for module in model.modules()
        if id(module) not in inside
        for parameter in module.parameters(recurse=False)
    }
    for parameter in model.parameters():
        if id(parameter) in outside:
            parameter.requires_grad_(False)
    embeddings = encoder.get_input_embeddings().weight
    return "encoder" if embeddings.requires_grad else "encoder without its embeddings, which the decoder shares"


def full_precision_accelerator() -> Accelerator:
    """An accelerator that trains in float32. Raises if the process has one of another precision, as all share it."""
    unused = DistributedDataParallelKwargs(find_unused_parameters=True)  # of sinusoids, and of layers without heads
    try:
        return Accelerator(mixed_precision="no", kwargs_handlers=[unused])
    except ValueError as error:
        raise UsageError(
            f"Pruning trains in float32, but an Accelerator or Trainer of this process uses "
            f"{AcceleratorState().mixed_precision}, and accelerate has one precision for all. Prune in a process of "
            "its own, or call accelerate.state.AcceleratorState._reset_state() when the other training is over."
        ) from error


def learn(
    model: nn.Module,
    task: Task,
    recipe: Recipe,
    folder: Path,
    execution: Execution,
    *,
    judge: Task | None = None,
    partner: Partner | None = None,
    stage: str = "training",
    trained: str = "all weights",
) -> TrainingStage:
    """Train a model by a recipe, resuming from the folder. Returns the training stage; the model is then in eval mode.

    trained: description of the trained weights, for the record.
    """
    accelerator = full_precision_accelerator()

    def watch(report: Report) -> None:
        execution.progress(stage, report.step, report.of)

    def measure(live: nn.Module) -> dict[str, float]:
        return dict(judge.held_out(live)) if judge is not None else {}

    with ExitStack() as block:
        if any(parameter.requires_grad for parameter in model.parameters()):
            block.enter_context(full_precision(model))
        if accelerator.device.type == "cpu":
            block.enter_context(eager_attention(model))  # faster than SDPA on short texts
        progress = Loop(
            model, task, recipe, folder, width_of(model), judge=measure, keep=lambda _: None, accelerator=accelerator,
            save_seconds=execution.save_seconds, watch=watch, partner=partner,
        ).run()  # fmt: skip
    model.eval()
    return TrainingStage(trained, progress.step, progress.seconds, progress.epoch_results(), recipe.rate, recipe.warmup)
