"""Distilled: a task to train on that asks for what another model predicts as well as for the right answer."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.tasks.task import Batch, Teachable, Trainable

_TEACHABLE = ("logits", "predicted", "logits_loss")


@dataclass(frozen=True)
class Distilled:
    """The same task; a share of its training loss is the distance from a teacher's predictions (Hinton et al. 2015).

    The loss of a prediction is (1 - share) loss + share KL(teacher || model), both softmaxes at temperature 1: the same
    gradients as learning a mixture of the answer and the teacher's distribution. All else is the task's own.
    """

    task: Teachable
    teacher: nn.Module  # in eval mode; goes to the device of the model that learns
    share: float  # of the teacher in the loss, above 0, at most 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `copy` asks for some before there is a task
            raise AttributeError(name)
        return getattr(self.task, name)

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        logits_BTC = self.task.logits(model, batch)
        told = self.task.logits_loss(logits_BTC, batch)
        taught = self._distance(logits_BTC, batch)
        return (1 - self.share) * told + self.share * taught

    def _distance(self, logits_BTC: Tensor, batch: Batch) -> Tensor:
        """KL(teacher || model), summed over predictions."""
        device = logits_BTC.device
        with torch.no_grad():
            wanted_BTC = self.task.logits(self.teacher.to(device), batch)
        asked_BT = self.task.predicted(batch).to(device)
        found_PC, wanted_PC = (logits[asked_BT].float().log_softmax(-1) for logits in (logits_BTC, wanted_BTC))
        return nn.functional.kl_div(found_PC, wanted_PC, reduction="sum", log_target=True)


def distilled(task: Trainable, teacher: nn.Module, share: float) -> Trainable:
    """The task with a copy of the teacher as it is now, or the task itself where the share is 0."""
    if not 0 <= share <= 1:
        raise UsageError(f"distill is the share of the teacher in the loss, from 0 to 1; got {share}.")
    if not share:
        return task
    missing = [name for name in _TEACHABLE if not hasattr(task, name)]
    if missing:
        raise UsageError(
            f"Learning from a teacher's predictions needs a task that has {', '.join(_TEACHABLE)}; {task.name!r} has "
            f"no {missing[0]}. Without distill (0) it can be trained on."
        )
    return Distilled(cast(Teachable, task), copy.deepcopy(teacher).eval(), share)
