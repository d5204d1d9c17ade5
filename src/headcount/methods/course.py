"""Course: how a model learns while it is pruned and after. What is frozen, how long, how fast; nothing about gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import nn

from headcount.errors import UsageError
from headcount.sites.locate import locate
from headcount.sites.running import eager_attention
from headcount.tasks.task import Task
from headcount.training.loop import FROZEN, Loop, Report
from headcount.training.partner import Partner
from headcount.training.recipe import Recipe
from headcount.training.transformer import is_pre_norm

Progress = Callable[[str, int, int], None]  # part, done, of
_WARMUP = 20  # steps, of a model that has learned something already
_LONG_WARMUP = 300  # from random weights
_FROM_RANDOM = {"steps": 1600, "tune": 800}  # as many in all as the preset tiny has


@dataclass(frozen=True)
class Course:
    """Steps with gates, then steps of fine-tuning without the heads that went; each part begins a fresh optimizer."""

    steps: int = 150
    tune: int = 1050
    rate: float | None = None  # of the weights; None: as `usual_rate` says
    warmup: int | None = None  # None: 20, or 300 from random weights
    batch: int = 1000  # source tokens of a step
    chunk: int = 1000
    clip: float = 1.0
    seed: int = 0
    fresh: bool = False  # begin from random weights
    distill: float = 0.0  # share of the loss that asks for what the model predicted before it was pruned

    def __post_init__(self) -> None:
        if self.steps < 0 or self.tune < 0:
            raise UsageError(f"steps and tune are numbers of steps, 0 or more; got {self.steps} and {self.tune}.")

    @classmethod
    def of(cls, *, fresh: bool = False, **asked: Any) -> Course:
        """The usual value for what is None; a model that begins at random needs more steps."""
        given = {name: value for name, value in asked.items() if value is not None}
        return cls(fresh=fresh, **{**(_FROM_RANDOM if fresh else {}), **given})

    def recipe(self, steps: int, rate: float, *, falls: bool, seed: int) -> Recipe:
        """For a model that has learned something already. falls: bring the rate down to zero after warm-up."""
        warmup = min(self.warmup or min(_WARMUP, max(1, steps // 4)), steps)
        return self._recipe(steps, rate, warmup, cooldown=steps - warmup if falls else 0, seed=seed)

    def from_random(
        self, steps: int, rate: float | None, *, warmup: int | None = None, falls: bool, seed: int
    ) -> Recipe:
        """Ordinary training, as the presets have it. falls: bring the rate down to zero over the last third."""
        warmup = min(warmup or min(_LONG_WARMUP, 1 + steps // 4), steps)
        return self._recipe(steps, rate, warmup, cooldown=steps // 3 if falls else 0, seed=seed)

    def _recipe(self, steps: int, rate: float | None, warmup: int, *, cooldown: int, seed: int) -> Recipe:
        return Recipe(
            batch=self.batch, chunk=min(self.chunk, self.batch), rate=rate, warmup=warmup, steps=steps,
            cooldown=cooldown, clip=self.clip, average=1, seed=seed,
        )  # fmt: skip


def usual_rate(model: nn.Module, task: Task) -> float:
    """3e-3 for translation models 96 wide, less for wider ones; 5e-5, as BERT is fine-tuned, for anything else."""
    width = width_of(model)
    return 3e-3 * (96 / width) ** 0.5 if task.name == "translation" else 5e-5


def random_rate(model: nn.Module, task: Task) -> float | None:
    """From random weights: for translation as the presets have it, else 5e-4.

    None is the falling rate of Vaswani et al. 2017, for models that normalise after each sum.
    """
    if task.name != "translation":
        return 5e-4
    return usual_rate(model, task) if is_pre_norm(model) else None


def width_of(model: nn.Module) -> int:
    config: Any = getattr(model, "config", None)
    width = getattr(config, "d_model", None) or getattr(config, "hidden_size", None)
    if not width:
        first = locate(model)[0]
        width = first.total * first.head_dim
    return int(width)


def trainable(task: Task) -> Task:
    if not task.trains:
        raise UsageError(f"This method trains, and the task {task.name!r} cannot be trained on.")
    return task


@contextmanager
def only_trained(model: nn.Module, kinds: Sequence[str] | None, *, weights: bool = True) -> Iterator[str]:
    """Freeze what the course must not change, inside the block; says what is trained.

    Gates on encoder self-attention alone, in a model with a decoder: the encoder is trained with the source embeddings,
    unless those are the decoder's too, and nothing of the decoder (Voita et al. 2019, section 6.2).
    weights: whether any weights are trained at all.
    """
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        said = _freeze(model, kinds, weights)
        if weights and not any(parameter.requires_grad for parameter in model.parameters()):
            raise UsageError(FROZEN)
        yield said
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


def learn(
    model: nn.Module,
    task: Task,
    recipe: Recipe,
    folder: Path,
    *,
    partner: Partner | None = None,
    judge: Task | None = None,
    part: str = "training",
    save_seconds: float = 60.0,
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Train a model by a recipe, from wherever the folder stands; what the run took. The model ends in eval mode."""
    accelerator = Accelerator(mixed_precision="no")

    def watch(report: Report) -> None:
        progress(part, report.step, report.of)

    def measured(live: nn.Module) -> dict[str, float]:
        return dict(judge.held_out(live)) if judge is not None else {}

    with ExitStack() as block:
        if accelerator.device.type == "cpu":
            block.enter_context(eager_attention(model))  # faster than torch's own attention on short texts
        done = Loop(
            model, task, recipe, folder, width_of(model), judge=measured, keep=lambda _: None, accelerator=accelerator,
            save_seconds=save_seconds, watch=watch, partner=partner,
        ).run()  # fmt: skip
    model.eval()
    return {"steps": done.step, "seconds": done.seconds, "epochs": done.epochs}
