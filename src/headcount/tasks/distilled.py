"""Distilled: a training task whose loss adds a distillation term (KL divergence from a teacher's predictions)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.tasks.task import Batch, Quality, Task


class Distilled(Task):
    """A task whose training loss includes the distance from a teacher's predictions (Hinton et al. 2015).

    The loss of a prediction is (1 - share) loss + share KL(teacher || model), both softmaxes at temperature 1: the same
    gradients as learning a mixture of the answer and the teacher's distribution. Everything else is that of the task.
    """

    predicts = trains = True

    def __init__(self, task: Task, teacher: nn.Module, share: float) -> None:
        """teacher: in eval mode; it is moved to the device of the student. share: weight of the distillation loss."""
        self.task, self.teacher, self.share = task, teacher, share
        self.name, self.metric, self.split, self.tokenizer = task.name, task.metric, task.split, task.tokenizer
        self.identity, self.writes = task.identity, task.writes

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        logits_BTC = self.task.logits(model, batch)
        answer_loss = self.task.logits_loss(logits_BTC, batch)
        teacher_loss = self._distance(logits_BTC, batch)
        return (1 - self.share) * answer_loss + self.share * teacher_loss

    @property
    def fingerprint(self) -> str:
        return self.task.fingerprint

    @property
    def example_hashes(self) -> Sequence[str] | None:
        return self.task.example_hashes

    @property
    def lengths(self) -> np.ndarray:
        return self.task.lengths

    def batches(self) -> Iterator[Batch]:
        return self.task.batches()

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        return self.task.batch(rows)

    def targets(self, rows: Sequence[int] | np.ndarray) -> int:
        return self.task.targets(rows)

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.task.nll(model, batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.task.loss(model, batch)

    def quality(self, model: nn.Module) -> Quality:
        return self.task.quality(model)

    def held_out(self, model: nn.Module) -> dict[str, float]:
        return self.task.held_out(model)

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.task.logits(model, batch)

    def predicted(self, batch: Batch) -> Tensor:
        return self.task.predicted(batch)

    def _distance(self, logits_BTC: Tensor, batch: Batch) -> Tensor:
        """KL(teacher || model), summed over predictions."""
        device = logits_BTC.device
        with torch.no_grad():
            taught_BTC = self.task.logits(self.teacher.to(device), batch)
        predicted_BT = self.task.predicted(batch).to(device)
        learned_PC, taught_PC = (logits[predicted_BT].float().log_softmax(-1) for logits in (logits_BTC, taught_BTC))
        return nn.functional.kl_div(learned_PC, taught_PC, reduction="sum", log_target=True)


def distilled(task: Task, teacher: nn.Module, share: float) -> Task:
    """The task with a copy of the current teacher, or the task itself if the share is 0."""
    if not 0 <= share <= 1:
        raise UsageError(f"distill (weight of the distillation loss) must be from 0 to 1; got {share}.")
    if not share:
        return task
    if not (task.predicts and task.trains):
        raise UsageError(
            f"Distillation needs a task that defines predictions; {task.name!r} does not. Train without it: distill=0."
            if task.trains
            else f"The task {task.name!r} cannot be trained on."
        )
    return Distilled(task, copy.deepcopy(teacher).eval(), share)
