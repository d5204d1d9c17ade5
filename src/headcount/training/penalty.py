"""The penalty on open gates: a fixed factor, or one that is adapted until the target number of heads is left.

Shapes: G gated heads, N groups of heads with a budget each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.probes.gated import HardConcreteGates
from headcount.probes.gates import Group, groups
from headcount.training.partner import Partner

_FURTHEST = 20.0  # largest z: sinh(20) is 2e8 times the gates' gradients, which closes any gate


@dataclass(frozen=True)
class Control:
    """Settings of the predictive controller that adapts lambda to a budget.

    The target falls linearly from all heads to the budget. The number of open gates is predicted from the values of the
    gates and their speed: a gate takes many steps to close, so that lambda would otherwise react too late.
    lambda = unit * sinh(z), where z grows by `growth` times the share of excess heads. unit is the size of the gates'
    gradients, so that nothing depends on the scale of the loss. Positive z closes gates, negative z opens them.
    """

    descent: float = 0.6  # share of the steps over which the target falls
    growth: float = 1.0  # of z, at every step
    ahead: float = 0.4  # share of the steps
    memory: float = 0.98  # of unit, from step to step


class Penalty(Partner):
    """Gates under a penalty: lambda times the expected number of open heads, added to the loss per prediction."""

    gates: HardConcreteGates
    factor_N: Tensor  # lambda of each group
    drive_N: Tensor  # z of each group
    unit: Tensor  # size of the gates' gradients
    speed_G: Tensor  # of the gates, smoothed
    reached: Tensor  # [2]: step since which the budget is met (0: not met), share of settled gates then

    def __init__(
        self,
        gates: HardConcreteGates,
        *,
        steps: int,
        keep: int | Mapping[str, int] | None = None,
        factor: float | None = None,
        rate: float = 0.05,
        seed: int = 0,
        control: Control | None = None,
    ) -> None:
        """keep: number of heads to keep, in total or by kind. factor: fixed lambda. Give one of the two.
        steps: of the whole training. rate: learning rate of the gates.
        """
        super().__init__(gates, rate=rate, seed=seed)
        if (keep is None) == (factor is None):
            raise UsageError("Give either the number of heads to keep or the factor of the penalty (lambda).")
        if factor is not None and not 0 <= factor < float("inf"):
            raise UsageError(f"The factor of the penalty (lambda) must be 0 or more; got {factor}.")
        self.groups = groups(gates.heads, keep) if keep is not None else ()
        self.fixed = factor
        self._steps, self._step, self._control = steps, 0, control or Control()
        self.register_buffer("factor_N", torch.zeros(len(self.groups)))
        self.register_buffer("drive_N", torch.zeros(len(self.groups), dtype=torch.float64))
        self.register_buffer("unit", torch.zeros(()))
        self.register_buffer("speed_G", torch.zeros(len(gates.heads)))
        self.register_buffer("reached", torch.zeros(2, dtype=torch.float64))
        self._before_G = gates.logits_G.detach().clone()

    def before(self, step: int) -> None:
        super().before(step)
        self._step = step
        self._before_G = self.gates.logits_G.detach().clone()

    def penalty(self) -> Tensor:
        if self.fixed is not None:
            return self.fixed * self.gates.penalty()
        self._adapt()
        expected_G, total = self.gates.expected(), self.gates.logits_G.new_zeros(())
        for number, group in enumerate(self.groups):
            total = total + self.factor_N[number] * expected_G[group.places].sum()
        return total

    @torch.no_grad()
    def _adapt(self) -> None:
        """Adapt lambda of the current step. The gates have only the gradients of the loss at this point."""
        gradient_G = self.gates.logits_G.grad
        size = gradient_G.square().mean().sqrt() if gradient_G is not None else self.unit
        memory = self._control.memory if self._step > 1 else 0.0
        self.unit.mul_(memory).add_(size, alpha=1 - memory)
        ahead = self._control.ahead * self._steps
        foreseen_G = self._certain(self.gates.logits_G + ahead * self.speed_G)
        for number, group in enumerate(self.groups):
            surplus = float(foreseen_G[group.places].sum()) - self._target(group)
            drive = float(self.drive_N[number]) + self._control.growth * surplus / len(group.places)
            self.drive_N[number] = min(_FURTHEST, max(-_FURTHEST, drive))
            self.factor_N[number] = float(self.unit) * math.sinh(float(self.drive_N[number]))

    def _certain(self, logits_G: Tensor) -> Tensor:
        """P(1) / (P(0) + P(1)): one half at the boundary of the test-time rule."""
        logits_G = logits_G - self.gates.closing
        one_G, zero_G = self.gates.shape.one(logits_G), self.gates.shape.zero(logits_G)
        return one_G / (one_G + zero_G)

    def _target(self, group: Group) -> float:
        """Target number of heads of a group after the current step."""
        share = min(1.0, self._step / max(1.0, self._control.descent * self._steps))
        return len(group.places) + share * (group.keep - len(group.places))

    @torch.no_grad()
    def after(self, step: int) -> None:
        self.speed_G.mul_(0.8).add_(self.gates.logits_G - self._before_G, alpha=0.2)
        open_G = [value > 0 for value in self.gates.chosen().tolist()]
        if not self.groups or not all(
            sum(open_G[index] for index in group.places) == group.keep for group in self.groups
        ):
            self.reached.zero_()
        elif not self.reached[0]:
            self.reached.copy_(torch.tensor([step, self.gates.settled()], dtype=torch.float64))

    def report(self) -> dict[str, Any]:
        factors = self.fixed if self.fixed is not None else [float(value) for value in self.factor_N]
        return {"lambda": factors, "expected": float(self.gates.expected().detach().sum()), **super().report()}
