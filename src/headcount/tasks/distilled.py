"""Distillation: a training task whose loss adds the distance from a teacher's predictions (KL divergence)."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.tasks.batch import Batch
from headcount.tasks.task import Task


@dataclass(frozen=True)
class Teacher:
    """A model whose predictions a student learns besides the answers of a task (Hinton et al. 2015).

    The loss of a prediction is (1 - share) loss + share KL(teacher || model), both softmaxes at temperature 1: the same
    gradients as learning a mixture of the answer and the teacher's distribution.
    """

    task: Task
    model: nn.Module  # in eval mode; it is moved to the device of the student
    share: float  # weight of the distillation loss

    def __call__(self, answer_loss: Tensor, logits_BTC: Tensor, batch: Batch) -> Tensor:
        """The loss of a batch, from that of the answers and the logits of the student."""
        return (1 - self.share) * answer_loss + self.share * self._distance(logits_BTC, batch)

    def _distance(self, logits_BTC: Tensor, batch: Batch) -> Tensor:
        """KL(teacher || model), summed over predictions."""
        device = logits_BTC.device
        with torch.no_grad():
            taught_BTC = self.task.logits(self.model.to(device), batch)
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
    if type(task).loss_sum is not Task.loss_sum:  # it decides on the loss alone, and never calls the teacher
        raise UsageError(
            f"The task {task.name!r} has a loss_sum of its own, which knows no teacher. Define logits_loss instead, or "
            "train without distillation: distill=0."
        )
    taught = copy.copy(task)
    taught.teacher = Teacher(task, copy.deepcopy(teacher).eval(), share)
    return taught
