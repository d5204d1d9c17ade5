"""The training loop: the same model with one process or many, interrupted or not.

Random numbers of a step depend only on the seed and the step, and the order of the data on the seed and the epoch:
a run that resumes from its last state takes the same steps as an uninterrupted one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.sites.running import seed_generators
from headcount.tasks.task import Task
from headcount.training.batching import Step, epoch_steps, share
from headcount.training.log import Log
from headcount.training.partner import Partner
from headcount.training.recipe import Recipe
from headcount.training.standing import Standing
from headcount.training.state import read_state, write_state

STATE, LOG = "state.safetensors", "metrics.jsonl"
FROZEN = "There is nothing to train: every weight of the model is frozen (requires_grad is False)."
LOG_EVERY = 20  # steps


@dataclass(frozen=True)
class Report:
    """Progress, reported every few steps."""

    step: int
    of: int  # expected number of steps
    epoch: int
    loss: float
    tokens_per_second: float  # source tokens, over all processes
    rate: float


@dataclass(frozen=True)
class Snapshots:
    """Models saved within the first epoch, in which most is learned: after 1/2, 1/4, 1/8 of it and so on."""

    number: int
    keep: Callable[[float], object]  # called with the share of the epoch

    def keep_after(self, step: int, steps_of_epoch: int) -> None:
        """Save a model after this step, if it is due. A resumed run saves the same models."""
        for part in (0.5**power for power in range(1, self.number + 1)):
            if step == max(1, round(part * steps_of_epoch)) < steps_of_epoch:
                self.keep(part)


@dataclass
class Loop:
    """Training of a model on a task. `run` continues to the end of the recipe."""

    model: nn.Module
    task: Task
    recipe: Recipe
    folder: Path
    width: int  # of the model, for the learning rate
    judge: Callable[[nn.Module], dict[str, float]]  # after each epoch; includes what the recipe watches
    keep: Callable[[int], object]  # called with the number of each finished epoch, on the main process
    accelerator: Accelerator
    save_seconds: float = 60.0
    watch: Callable[[Report], None] = lambda _: None
    partner: Partner | None = None
    vitals: Callable[[nn.Module], dict[str, dict[str, float]]] | None = None  # logged after each epoch, by layer
    snapshots: Snapshots | None = None

    @torch.inference_mode(False)  # modes of the caller, in which nothing can be trained
    @torch.enable_grad()
    def run(self) -> Standing:
        recipe, accelerator = self.recipe, self.accelerator
        self.model.to(accelerator.device)
        if self.partner:
            self.partner.to(accelerator.device)
        bare = torch.optim.Adam(self._trained(), lr=0.0, betas=recipe.betas, eps=recipe.epsilon, fused=True)
        progress = self._resume(bare)
        wrapped, optimizer = self._prepare(bare)
        saved = time.monotonic()
        while not progress.finished(recipe):
            steps = self._steps(progress.epoch)
            for losses in self._epoch(wrapped, optimizer, steps, progress):
                self._report(progress, len(steps), losses)
                if self.snapshots and not progress.epoch and accelerator.is_main_process:
                    self.snapshots.keep_after(progress.epoch_steps, len(steps))
                if recipe.steps is not None and progress.step >= recipe.steps:
                    break  # saved only after the epoch is measured: a killed run repeats this step
                if time.monotonic() - saved > self.save_seconds:
                    progress.recent_losses = losses.values() if accelerator.num_processes == 1 else []
                    self._save(bare, progress)
                    saved = time.monotonic()
            self._end_epoch(progress)
            if progress.finished(recipe) or time.monotonic() - saved > self.save_seconds:
                self._save(bare, progress)  # after the epoch's model, so that a killed run never skips one
                saved = time.monotonic()
        return progress

    def _trained(self) -> list[dict[str, list[nn.Parameter]]]:
        """The trained parameters, those of the partner last."""
        groups = [[parameter for parameter in self.model.parameters() if parameter.requires_grad]]
        groups += [list(self.partner.parameters())] if self.partner else []
        if not any(groups):
            raise UsageError(FROZEN)
        return [{"params": group} for group in groups if group]

    def _prepare(self, optimizer: torch.optim.Optimizer) -> tuple[nn.Module, torch.optim.Optimizer]:
        accelerator = self.accelerator
        if any(parameter.requires_grad for parameter in self.model.parameters()):
            return accelerator.prepare(self.model, optimizer)
        # DDP needs parameters with gradients
        return accelerator.prepare_model(self.model, evaluation_mode=True), accelerator.prepare_optimizer(optimizer)

    def _steps(self, epoch: int) -> list[Step]:
        recipe = self.recipe
        return epoch_steps(self.task.lengths, batch=recipe.batch, chunk=recipe.chunk, seed=recipe.seed, epoch=epoch)

    def _epoch(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, steps: list[Step], progress: Standing
    ) -> Iterator[_Losses]:
        """Take the remaining steps of an epoch, one at a time."""
        model.train()
        losses = _Losses(torch.tensor(progress.recent_losses, device=self.accelerator.device))
        for step in steps[progress.epoch_steps :]:
            started = time.monotonic()
            loss = self._step(model, optimizer, step, progress.step + 1)
            progress.step += 1
            progress.epoch_steps += 1
            spent = time.monotonic() - started
            progress.seconds += spent
            losses.add(loss, sum(int(self.task.lengths[rows, 0].sum()) for rows in step), spent)
            yield losses
            model.train()

    def _step(self, model: nn.Module, optimizer: torch.optim.Optimizer, step: Step, number: int) -> Tensor | None:
        """One update of the weights. Returns the loss per prediction of this process; None if nothing is predicted."""
        accelerator, recipe = self.accelerator, self.recipe
        rate = recipe.learning_rate(number, self.width)
        for group in optimizer.param_groups:
            group["lr"] = rate
        if self.partner:
            optimizer.param_groups[-1]["lr"] = self.partner.rate
            self.partner.before(number)
        rank, processes = accelerator.process_index, accelerator.num_processes
        seed_generators(model, int(np.random.SeedSequence([recipe.seed, number, rank]).generate_state(1)[0]))
        predictions = sum(self.task.targets(rows) for rows in step)  # of all processes
        chunks = share(step, rank, processes)
        total = torch.zeros((), device=accelerator.device)
        for index, rows in enumerate(chunks):
            last = index == len(chunks) - 1
            with nullcontext() if last else accelerator.no_sync(model), accelerator.autocast():
                loss = self.task.loss_sum(model, self.task.batch(rows)) / max(1, predictions)
                accelerator.backward(loss * processes)  # DDP averages over processes
            total += loss.detach()
        if self.partner:
            self._penalise(self.partner)
        if recipe.clip:
            accelerator.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        optimizer.zero_grad()
        if self.partner:
            self.partner.after(number)
        return total if predictions else None

    def _penalise(self, partner: Partner) -> None:
        """Average the partner's gradients over processes, as it is not wrapped, and add those of the penalty."""
        if self.accelerator.num_processes > 1:
            for parameter in partner.parameters():
                if parameter.grad is not None:
                    parameter.grad = self.accelerator.reduce(parameter.grad, "mean")
        penalty = partner.penalty()
        if penalty.requires_grad:
            self.accelerator.backward(penalty)

    def _report(self, progress: Standing, steps_of_epoch: int, losses: _Losses) -> None:
        if progress.step % LOG_EVERY:
            return
        recipe = self.recipe
        loss = float(self.accelerator.reduce(losses.mean(), "sum"))
        rate = recipe.learning_rate(progress.step, self.width)
        if self.accelerator.is_main_process:
            ends = [end for end in (recipe.steps, recipe.epochs and recipe.epochs * steps_of_epoch) if end]
            report = Report(progress.step, min(ends, default=0), progress.epoch + 1, loss, losses.speed(), rate)
            gate_report = self.partner.report() if self.partner else {}
            Log(self.folder / LOG).add(step=report.step, epoch=report.epoch, loss=loss, rate=rate, **gate_report)
            self.watch(report)
        losses.clear()

    def _end_epoch(self, progress: Standing) -> None:
        """Measure and save the epoch's model."""
        progress.epoch, progress.epoch_steps, progress.recent_losses = progress.epoch + 1, 0, []
        measured = self._measure()
        progress.epochs.append({"epoch": progress.epoch, "step": progress.step, **measured})
        if self.accelerator.is_main_process:
            self.keep(progress.epoch)
            layers = {"vitals": self.vitals(self.model)} if self.vitals else {}
            Log(self.folder / LOG).add(**progress.epochs[-1], seconds=progress.seconds, **layers)

    def _measure(self) -> dict[str, float]:
        """Measures of the main process, sent to all."""
        measured = [self.judge(self.model) if self.accelerator.is_main_process else {}]
        return dict(broadcast_object_list(measured)[0])

    def _save(self, optimizer: torch.optim.Optimizer, progress: Standing) -> None:
        if self.accelerator.is_main_process:
            scaler = self.accelerator.scaler
            progress.loss_scale = scaler.state_dict() if scaler else {}
            write_state(self.folder / STATE, self.model, optimizer, progress, self.partner)

    def _resume(self, optimizer: torch.optim.Optimizer) -> Standing:
        file = self.folder / STATE
        progress = read_state(file, self.model, optimizer, self.partner) if file.is_file() else Standing()
        if self.accelerator.scaler and progress.loss_scale:
            self.accelerator.scaler.load_state_dict(progress.loss_scale)
        if self.accelerator.is_main_process:
            Log(self.folder / LOG).rewind(progress.step, progress.epoch)
        return progress


class _Losses:
    """Loss and speed since the last report."""

    def __init__(self, earlier: Tensor) -> None:
        """earlier: losses before an interruption that were not reported yet."""
        self.clear()
        self._losses += earlier.unbind()

    def clear(self) -> None:
        self._losses: list[Tensor] = []
        self._tokens, self._seconds = 0, 0.0

    def add(self, loss: Tensor | None, tokens: int, seconds: float) -> None:
        self._losses += [] if loss is None else [loss]
        self._tokens += tokens
        self._seconds += seconds

    def values(self) -> list[float]:
        return [float(loss) for loss in self._losses]

    def mean(self) -> Tensor:
        return torch.stack(self._losses).mean() if self._losses else torch.tensor(torch.nan)

    def speed(self) -> float:
        return self._tokens / max(self._seconds, 1e-9)
