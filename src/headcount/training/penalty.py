"""The penalty on open gates: a factor that is given, or one that is adapted until so many heads are left.

Shapes: G gated heads, N groups of heads with a budget each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.probes.gated import HardConcreteGates
from headcount.probes.gates import groups


@dataclass(frozen=True)
class Control:
    """How the factor is adapted: the heads expected follow a straight line from all of them down to the budget."""

    descent: float = 0.5  # share of the steps over which the number of heads falls
    gain: float = 0.02  # of the factor, for each head too many, at once
    growth: float = 0.002  # of the factor, for each head too many, at every step


class Penalty(nn.Module):
    """Gates under a penalty: lambda times the expected number of open heads, added to the loss per prediction."""

    factor_N: Tensor

    def __init__(
        self,
        gates: HardConcreteGates,
        *,
        steps: int,
        keep: int | Mapping[str, int] | None = None,
        factor: float | None = None,
        rate: float = 0.02,
        seed: int = 0,
        control: Control | None = None,
    ) -> None:
        """keep: heads that are to be left, of all gated ones or of each kind. factor: lambda, fixed. One of the two.
        steps: of the whole training. rate: learning rate of the gates.
        """
        super().__init__()
        if (keep is None) == (factor is None):
            raise UsageError("Give either the number of heads to keep or the factor of the penalty (lambda).")
        if factor is not None and not 0 <= factor < float("inf"):
            raise UsageError(f"The factor of the penalty (lambda) is 0 or more; got {factor}.")
        self.gates = gates
        self.groups = groups(gates.heads, keep) if keep is not None else ()
        self.fixed = factor
        self._steps, self._rate, self._seed = steps, rate, seed
        self._control = control or Control()
        self._step = 0
        self.register_buffer("factor_N", torch.zeros(len(self.groups)))

    def rate(self, step: int) -> float:  # noqa: ARG002
        return self._rate

    def before(self, step: int) -> None:
        self._step = step
        seed = int(np.random.SeedSequence([self._seed, step, 1]).generate_state(1)[0])
        self.gates.draw(torch.Generator().manual_seed(seed))

    def penalty(self) -> Tensor:
        if self.fixed is not None:
            return self.fixed * self.gates.penalty()
        expected_G, total = self.gates.expected(), self.gates.logits_G.new_zeros(())
        for number, group in enumerate(self.groups):
            expected = expected_G[group.places].sum()
            surplus = expected.detach() - self._target(len(group.places), group.keep)
            total = total + (self.factor_N[number] + self._control.gain * surplus) * expected
        return total

    @torch.no_grad()
    def after(self, step: int) -> None:  # noqa: ARG002
        expected_G = self.gates.expected()
        for number, group in enumerate(self.groups):
            surplus = expected_G[group.places].sum() - self._target(len(group.places), group.keep)
            self.factor_N[number] += self._control.growth * surplus

    def _target(self, count: int, keep: int) -> float:
        """Heads that are to be left after the step under way."""
        share = min(1.0, self._step / max(1.0, self._control.descent * self._steps))
        return count + share * (keep - count)

    def report(self) -> dict[str, Any]:
        expected_G, open_G = self.gates.expected().detach(), self.gates.shape.open(self.gates.logits_G.detach())
        return {
            "lambda": self.fixed if self.fixed is not None else [round(value, 6) for value in self.factor_N.tolist()],
            "expected": round(float(expected_G.sum()), 4),
            "open": int(open_G.sum()),
            "settled": self.gates.settled(),
            "gates": {str(head): round(value, 4) for head, value in self.gates.means().items()},
        }
